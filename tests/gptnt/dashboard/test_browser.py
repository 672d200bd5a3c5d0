"""The dashboard in a real browser: from the disk, without a network and without complaints."""

import pytest
from gptnt.dashboard.browser import Browser, find_chromium
from gptnt.dashboard.workbench import HOSTILE, database, games
from rowproof.gptnt.dashboard import write_dashboard

pytestmark = pytest.mark.slow

GAMES = "JSON.parse(document.getElementById('page-data').textContent).games"


@pytest.fixture(scope="module")
def chromium():
    program = find_chromium()
    if program is None:
        pytest.skip("there is no Chromium here: install the Debian package chromium")
    browser = Browser(program)
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    write_dashboard(database(folder, games()), folder / "page.html")
    return folder / "page.html"


@pytest.fixture
def browser(chromium, page):
    """The browser at the page; whatever it complains of fails the test."""
    chromium.look(1400, 900)
    chromium.complaints.clear()
    chromium.requests.clear()
    chromium.open(page)
    yield chromium
    assert chromium.complaints == []
    assert {url.partition(":")[0] for url in chromium.requests} <= {"file", "data", "about"}


def column(browser, table, number):
    cells = f"[...document.querySelectorAll('#table-{table} tbody tr')].map(row => row.cells[{number}].textContent)"
    return browser.js(cells)


def act(browser, expression):
    """Do something that changes the address, and wait until the page has drawn what follows."""
    before = browser.js("Number(document.body.dataset.ready)")
    browser.js(expression)
    browser.wait(f"Number(document.body.dataset.ready) > {before}")


def click(browser, selector):
    act(browser, f"(() => {{ const one = document.querySelector({selector!r}); one.focus(); one.click(); }})()")


def choose(browser, name, value):
    act(
        browser,
        f"(() => {{ const box = document.querySelector('select[name={name}]'); box.value = {value!r}; "
        "box.dispatchEvent(new Event('change')); })()",
    )


def fragment(browser):
    return browser.js("decodeURIComponent(location.hash)")


def open_game(browser, page, condition, step=1):
    """Open the first game that meets a condition in JavaScript; return it."""
    game = browser.js(f"{GAMES}.find(game => {condition})")
    browser.open(page, f"#game={game['id']}&step={step}")
    browser.wait("document.querySelector('.step.current')")
    return game


def status(browser):
    return browser.js("document.querySelector('.status').textContent")


# ---- overview --------------------------------------------------------------------------------------------------


def test_the_overview_shows_all_games_and_every_table(browser):
    count = len(browser.js(GAMES))
    assert len(column(browser, "games", 0)) == count
    assert f"{count} games of {count}; 1 game among them does not count." in browser.js("document.body.innerText")
    for table in ("pairings", "modules", "errors"):
        assert column(browser, table, 0)
    assert "n/a" in column(browser, "pairings", 9) or "n = " in "".join(column(browser, "pairings", 7))


def test_a_click_on_a_head_sorts_and_another_one_turns_it_round(browser):
    numbers = [int(text) for text in column(browser, "games", 12)]
    assert numbers != sorted(numbers)
    click(browser, "[data-sort='games:defuser_turns']")
    assert fragment(browser) == "#sort-games=defuser_turns"
    assert [int(text) for text in column(browser, "games", 12)] == sorted(numbers)
    assert browser.js("document.querySelector('[aria-sort=ascending] button').dataset.sort") == "games:defuser_turns"
    click(browser, "[data-sort='games:defuser_turns']")
    assert fragment(browser) == "#sort-games=defuser_turns.desc"
    assert [int(text) for text in column(browser, "games", 12)] == sorted(numbers, reverse=True)
    assert browser.js("document.activeElement.dataset.sort") == "games:defuser_turns"


@pytest.mark.parametrize(
    ("name", "value", "condition"),
    [
        ("outcome", "timeout", "game.outcome === 'timeout'"),
        ("style", "async", "game.style === 'async'"),
        ("module", "Maze", "game.modules.includes('Maze')"),
        ("suite", "workbench rev 1", "true"),
        ("player", "scripted", "game.defuser === 'scripted'"),
    ],
)
def test_filters_choose_games_and_stay_in_the_address(browser, page, name, value, condition):
    wanted = sorted(browser.js(f"{GAMES}.filter(game => {condition}).map(game => game.id.slice(0, 8))"))
    assert wanted
    choose(browser, name, value)
    assert sorted(column(browser, "games", 0)) == wanted
    browser.open(page, browser.js("location.hash"))
    assert sorted(column(browser, "games", 0)) == wanted
    assert browser.js(f"document.querySelector('select[name={name}]').value") == value


def test_games_that_do_not_count_can_be_hidden(browser):
    valid = browser.js(f"{GAMES}.filter(game => game.valid).length")
    click(browser, "input[name=valid]")
    assert fragment(browser) == "#valid=1"
    assert len(column(browser, "games", 0)) == valid < len(browser.js(GAMES))


def test_filters_choose_rows_of_the_tables_and_change_no_figure(browser):
    before = column(browser, "pairings", 7)
    choose(browser, "outcome", "timeout")
    assert column(browser, "pairings", 7) == before
    choose(browser, "module", "Maze")
    assert 0 < len(column(browser, "pairings", 7)) < len(before)


def test_plots_are_named_and_say_their_figures_in_words(browser):
    texts = browser.js(
        "[...document.querySelectorAll('.plot svg')].map(one => one.getAttribute('aria-labelledby').split(' ')"
        ".map(id => document.getElementById(id).textContent))"
    )
    titles = [title for title, _ in texts]
    assert any(title.startswith("Defuse rate per module") for title in titles)
    assert {"Strikes", "Turns of the Defuser", "Time left, solved games"} <= set(titles)
    assert all(words for _, words in texts)
    strikes = next(words for title, words in texts if title == "Strikes")
    none = browser.js(f"{GAMES}.filter(game => game.strikes === 0).length")
    assert f"0 strikes: {none} (" in strikes


# ---- viewer ----------------------------------------------------------------------------------------------------


def test_keys_step_through_a_game(browser, page):
    open_game(browser, page, "game.modules.length === 11")
    size = browser.js("document.querySelectorAll('.step').length")
    assert status(browser) == f"Step 1 of {size}: Defuser at 0:00.0"
    first = browser.js("document.querySelector('.bomb').innerHTML")
    browser.key("ArrowRight")
    browser.key("ArrowRight")
    assert status(browser).startswith(f"Step 3 of {size}: ")
    browser.wait("location.hash.includes('step=3')")
    browser.key("ArrowLeft")
    assert status(browser).startswith("Step 2 of ")
    browser.key("End")
    assert status(browser).startswith(f"Step {size} of {size}: ")
    assert "DEFUSED" in browser.js("document.querySelector('.bomb').textContent")
    browser.key("ArrowRight")
    assert status(browser).startswith(f"Step {size} of {size}: ")
    browser.key("Home")
    assert browser.js("document.querySelector('.bomb').innerHTML.replaceAll(/svg[0-9]+/g, '')") == browser.js(
        f"{first!r}.replaceAll(/svg[0-9]+/g, '')"
    )
    # Only the dialogue scrolls, so the bomb stays where it is.
    assert browser.js("window.scrollY") == 0


def test_the_current_step_is_in_view_and_marked(browser, page):
    open_game(browser, page, "game.modules.length === 11", 60)
    inside = (
        "(() => { const [one, list] = ['.step.current', '.dialogue'].map(name => "
        "document.querySelector(name).getBoundingClientRect()); "
        "return one.top >= list.top - 1 && one.bottom <= list.bottom + 1; })()"
    )
    assert browser.js(inside)
    assert browser.js("document.querySelector('[aria-current=step]').dataset.index") == "59"


def test_play_goes_on_by_itself_and_stops_at_the_end(browser, page):
    open_game(browser, page, "game.outcome === 'solved' && game.modules.length === 1 && game.style === 'sync'")
    browser.js(
        "(() => { const box = document.querySelector('select[aria-label=Speed]'); box.value = '5'; "
        "box.dispatchEvent(new Event('change')); })()"
    )
    browser.key(" ")
    assert browser.js("Boolean(document.querySelector('button[aria-label=Pause]'))")
    size = browser.js("document.querySelectorAll('.step').length")
    browser.wait(f"document.querySelector('.status').textContent.startsWith('Step {size} of')")
    browser.wait("document.querySelector('button[aria-label=Play]')")


def test_every_kind_of_module_is_drawn_from_its_state(browser, page):
    for condition in ("game.modules.length === 11", "game.modules.includes('NeedyKnob')"):
        game = open_game(browser, page, condition, 5)
        shown = "[...document.querySelectorAll('.bomb svg text')].map(one => one.textContent)"
        # A module that cannot be drawn shows its name instead.
        assert not set(browser.js(shown)) & set(game["modules"])
        titles = browser.js("[...document.querySelectorAll('.bomb g > title')].map(one => one.textContent)")
        assert {name for name in game["modules"]} <= {title.partition(",")[0] for title in titles}


def test_the_close_up_marks_what_is_clicked(browser, page):
    game = open_game(browser, page, "game.modules.length === 11")
    clicked = 0
    for index in range(40):
        at = browser.js(
            "[...document.querySelectorAll('.step.current .action')].map(one => one.textContent.split(' ').at(-1))"
            f".concat(document.querySelector('.status').textContent.startsWith('Step {index + 1} of') ? [] : ['late'])"
        )
        assert at != ["late"], game
        if len(at) == 1 and len(at[0]) == 1:
            chosen = browser.js("[...document.querySelectorAll('.mark.chosen text')].map(one => one.textContent)")
            assert chosen == at
            clicked += 1
        browser.key("ArrowRight")
    assert clicked > 5


def test_errors_usage_and_folded_thoughts_are_shown(browser, page):
    open_game(browser, page, "game.attempt === 4")
    first = "document.querySelector('.step.defuser')"
    assert "1,000 in, 20 out tokens · 900 cache read tokens" in browser.js(f"{first}.innerText")
    assert browser.js(f"{first}.querySelector('.thoughts').open") is False
    assert browser.js("document.querySelector('.step.defuser.has-errors .errors').textContent") == (
        "⚠ action_parsing_failed"
    )


def test_hostile_text_is_shown_as_text_and_never_runs(browser, page):
    open_game(browser, page, "game.attempt === 4")
    shown = browser.js("document.querySelector('.step.defuser .message').textContent")
    for text in (
        "</script><script>window.hacked = 1</script>",
        "<img src=x onerror='window.hacked = 1'>",
        "&amp; ${x}",
    ):
        assert text in HOSTILE and text in shown
    # What would reorder or hide text is named instead.
    assert "⟨U+202E⟩reversed⟨U+202C⟩ nul␀ ⟨U+2028⟩" in shown
    assert browser.js("window.hacked") is None
    assert browser.js("document.querySelectorAll('#main img, #main script').length") == 0


def test_games_can_be_left_and_followed_by_the_next(browser, page):
    choose(browser, "outcome", "solved")
    click(browser, "#table-games tbody a")
    first = browser.js("new URLSearchParams(location.hash.slice(1)).get('game')")
    act(browser, "[...document.querySelectorAll('#game nav a')].at(-1).click()")
    assert first not in fragment(browser) and browser.js("Boolean(document.querySelector('.step.current'))")
    click(browser, "#to-overview")
    assert browser.js("document.getElementById('overview').hidden") is False
    assert fragment(browser) == "#outcome=solved"
    assert set(column(browser, "games", 1)) == {"✓ solved"}


def test_an_unknown_game_is_answered(browser, page):
    browser.open(page, "#game=none")
    assert "There is no such game in this page." in browser.js("document.body.innerText")


@pytest.mark.parametrize("dark", [False, True])
def test_a_narrow_window_never_scrolls_sideways(browser, page, dark):
    browser.look(420, 900, dark)
    browser.open(page)
    assert browser.js("document.documentElement.scrollWidth") <= 420
    open_game(browser, page, "game.modules.length === 11", 3)
    assert browser.js("document.documentElement.scrollWidth") <= 420
