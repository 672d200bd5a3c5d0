"""Language models over the OpenAI chat protocol: one request, its recording, its price. Knows no family."""
