from pipeline.archive.remedies import find_fixes
from tests.fakes.in_process import scratch_database
from tests.fakes.past_sessions import load_projects, store_sessions

# Measured on the set: 1.0 of the errors with a remedy have it first, 1.0 of the unknown errors have none.
RIGHT_FIRST, NONE_KNOWN = 0.8, 0.8


def name_steps(remedy):
    return [f"edit {step.target}" if step.type == "edit" else step.target for step in remedy.steps]


def test_the_right_remedy_comes_first():
    right = wrong = silent = asked_unknown = 0
    problems = []
    for project in load_projects("fixes"):
        with scratch_database() as database, database.write() as db:
            store_sessions(db, project["sessions"])
            for question in project["questions"]:
                remedies = find_fixes(db, question["error"], None, 3).remedies
                first = name_steps(remedies[0]) if remedies else []
                if question["remedy"] is None:
                    asked_unknown += 1
                    silent += not remedies
                    if remedies:
                        problems.append((project["project"], question["error"], first, remedies[0].likeness))
                elif question["remedy"] in first:
                    right += 1
                else:
                    wrong += 1
                    problems.append(
                        (project["project"], question["error"], question["remedy"], [name_steps(r) for r in remedies])
                    )
    print(right, wrong, silent, asked_unknown)
    for problem in problems:
        print(problem)
    assert right / (right + wrong) >= RIGHT_FIRST
    assert silent / asked_unknown >= NONE_KNOWN
