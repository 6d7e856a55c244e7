import pytest

LESSON = "Run the linter before pushing to the main branch"
QUESTION = "?q=run+the+linter+before+pushing"


def learn(client, content=LESSON, **fields):
    return client.write(content, kind="lesson", **fields)


def lessons(client, query="", **rest):
    return client.get(f"/v1/lessons{query}", **rest).get_json()["items"]


def answer(client, surface_id, *, followed=True, **fields):
    return client.post(f"/v1/lessons/surfaces/{surface_id}", {"followed": followed, **fields})


@pytest.fixture
def show_lesson(client, digested):
    """Show the lesson so often and return the surface ids."""

    def run(times):
        digested()
        return [lessons(client, QUESTION)[0]["surface_id"] for _ in range(times)]

    return run


def test_a_lesson_has_its_fields_and_no_record_yet(client):
    details = {"rule": "Lint first", "applies_when": "pushing", "severity": "critical"}
    learn(client, details=details)
    (lesson,) = lessons(client)
    assert {name: lesson[name] for name in details} == details
    assert (lesson["shown"], lesson["followed"], lesson["ignored"]) == (0, 0, 0)
    assert (lesson["low"], lesson["high"], lesson["usefulness"]) == (0.0, 1.0, "unproven")
    assert "surface_id" not in lesson


def test_lessons_are_listed_newest_first_and_page_by_page(client):
    for number in range(3):
        learn(client, f"Lesson {number}")
    client.write("No lesson at all")
    page = client.get("/v1/lessons?limit=2").get_json()
    assert [lesson["content"] for lesson in page["items"]] == ["Lesson 2", "Lesson 1"]
    assert [lesson["content"] for lesson in lessons(client, f"?cursor={page['next_cursor']}")] == ["Lesson 0"]


def test_listing_shows_nothing_to_an_agent_and_asking_does(client, show_lesson):
    learn(client)
    learn(client, "Water the plants on Fridays")
    lessons(client)
    assert len(set(show_lesson(3))) == 3
    answer(client, show_lesson(1)[0])
    assert {lesson["content"]: lesson["shown"] for lesson in lessons(client)} == {
        LESSON: 4,
        "Water the plants on Fridays": 0,
    }


def test_nothing_about_it_is_nothing_shown(client, digested):
    learn(client)
    digested()
    assert lessons(client, "?q=thanks,+looks+great!") == []


def test_a_lesson_can_be_answered_at_once(client, show_lesson):
    lesson_id = learn(client)
    (surface_id,) = show_lesson(1)
    assert answer(client, surface_id, note="as told").get_json() == {
        "surface_id": surface_id,
        "lesson_id": lesson_id,
        "followed": True,
    }
    (lesson,) = lessons(client)
    assert (lesson["shown"], lesson["followed"], lesson["ignored"]) == (1, 1, 0)


def test_the_last_word_counts(client, show_lesson):
    learn(client)
    (surface_id,) = show_lesson(1)
    answer(client, surface_id)
    answer(client, surface_id, followed=False)
    (lesson,) = lessons(client)
    assert (lesson["followed"], lesson["ignored"]) == (0, 1)


@pytest.mark.parametrize(("followed", "verdict"), [(True, "useful"), (False, "dead")])
def test_five_answers_decide_and_four_do_not(client, show_lesson, followed, verdict):
    learn(client)
    for number, surface_id in enumerate(show_lesson(5), start=1):
        answer(client, surface_id, followed=followed)
        assert lessons(client)[0]["usefulness"] == (verdict if number == 5 else "unproven")
    low, high = lessons(client)[0]["low"], lessons(client)[0]["high"]
    assert (low > 0.5) if followed else (high < 0.5)


def test_an_unknown_surfacing_has_no_answer(client):
    learn(client)
    assert answer(client, "01ARZ3NDEKTSV4RRFFQ69G5FAV").status_code == 404


def test_a_purged_lesson_takes_its_record_along(client, show_lesson):
    lesson_id = learn(client)
    (surface_id,) = show_lesson(1)
    answer(client, surface_id)
    client.delete(f"/v1/memories/{lesson_id}?hard=true")
    assert answer(client, surface_id).status_code == 404


def test_an_edit_keeps_the_record(client, show_lesson):
    lesson_id = learn(client)
    answer(client, show_lesson(1)[0])
    client.patch(f"/v1/memories/{lesson_id}", {"content": "Run the linter before every push"})
    assert [(lesson["content"], lesson["followed"]) for lesson in lessons(client)] == [
        ("Run the linter before every push", 1)
    ]


def test_nothing_is_noted_of_an_incognito_session(client, digested):
    learn(client)
    digested()
    client.post("/v1/incognito", {"session_id": "s1", "on": True})
    hidden = lessons(client, f"{QUESTION}&session=s1")[0]["surface_id"]
    shown = lessons(client, f"{QUESTION}&session=s2")[0]["surface_id"]
    assert answer(client, hidden).status_code == 404
    assert answer(client, shown).status_code == 200
    assert lessons(client)[0]["shown"] == 1


def test_lesson_feedback_note_is_redacted(client, show_lesson, container):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    learn(client)
    answer(client, show_lesson(1)[0], note=f"used {token}")
    with container.databases.get("default").read() as db:
        (note,) = db.execute("SELECT note FROM impression").fetchone()
    assert note.startswith("used [REDACTED:")


def test_a_lesson_of_another_agent_is_not_listed(client, digested):
    learn(client, scope={"kind": "agent", "id": "a"})
    digested()
    assert lessons(client) == lessons(client, "?agent=b") == lessons(client, f"{QUESTION}&agent=b") == []
    assert len(lessons(client, "?agent=a")) == len(lessons(client, f"{QUESTION}&agent=a")) == 1


@pytest.mark.parametrize(
    "body", [{}, {"followed": 1}, {"followed": True, "note": "x" * 2001}, {"followed": True, "x": 1}]
)
def test_an_answer_that_cannot_be_taken_is_refused(client, body):
    learn(client)
    assert client.post("/v1/lessons/surfaces/x", body).status_code == 422


@pytest.mark.parametrize("query", ["?q=", "?q=%20", "?limit=0", "?limit=201", "?nonsense=1"])
def test_a_question_that_cannot_be_taken_is_refused(client, query):
    learn(client)
    assert client.get(f"/v1/lessons{query}").status_code == 422


def test_a_workspace_that_does_not_exist_has_no_lessons(client):
    assert client.get("/v1/lessons", workspace="nowhere").status_code == 404
