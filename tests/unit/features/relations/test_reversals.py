import pytest

from pipeline.features.relations.reversals import find_returned, reverses


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("We're back to yarn after all.", "We moved from yarn to pnpm because of the disk space."),
        ("we use Jenkins again, the new runners were too slow", "CI: we switched from Jenkins to GitHub Actions."),
        ("We reverted to Redis.", "We replaced Redis with Valkey."),
        ("Wir sind zurück bei Jenkins.", "Wir haben Jenkins durch GitLab ersetzt."),
        ("Wir nehmen doch wieder MySQL.", "Wir nutzen Postgres statt MySQL."),
        ("Volvemos a yarn.", "Pasamos de yarn a pnpm."),
        ("Finalement on garde MySQL.", "On utilise Postgres au lieu de MySQL."),
        ("On revient à yarn.", "On a remplacé yarn par pnpm."),
    ],
)
def test_a_return_reverses_the_decision_that_left(newer, older):
    assert reverses(newer, older)
    assert not reverses(older, newer)


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        ("We're back to yarn after all.", "We moved from npm to pnpm."),
        ("Should we go back to yarn?", "We moved from yarn to pnpm."),
        ("The user goes back to the cart.", "We replaced the basket with a cart."),
        ("We use pnpm.", "We moved from yarn to pnpm."),
        ("We're back to pnpm.", "We moved from yarn to pnpm."),
    ],
)
def test_other_statements_reverse_nothing(newer, older):
    assert not reverses(newer, older)


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        (
            "We're going back on that: the slot reminders run on Celery after all, operations only monitors Celery.",
            "Settled with Henner this morning: the slot reminders run on Dramatiq from now on.",
        ),
        (
            "We're reversing the GraphQL decision: the catalogue API gets GraphQL after all, Maëlle changed her mind.",
            "We've decided against GraphQL for the catalogue API, Maëlle wants plain REST with ETags.",
        ),
        (
            "No GraphQL for the catalogue API after all.",
            "We decided to use GraphQL for the catalogue API.",
        ),
        (
            "Changed our minds: the image uploads go to MinIO, not S3.",
            "The image uploads go to S3, agreed with ops on Monday.",
        ),
        (
            "Wir machen das rückgängig: die Terminerinnerungen laufen doch auf Celery.",
            "Mit Henner ausgemacht: die Terminerinnerungen laufen ab jetzt auf Dramatiq.",
        ),
        (
            "Der Katalog bekommt doch kein GraphQL.",
            "Beschlossen: der Katalog bekommt GraphQL.",
        ),
        (
            "Der Katalog bekommt nun doch GraphQL, Maëlle hat sich umentschieden.",
            "Wir haben uns gegen GraphQL für den Katalog entschieden.",
        ),
        (
            "Damos marcha atrás: los recordatorios de turno van al final con Celery.",
            "Decidido con Henner: los recordatorios de turno van con Dramatiq.",
        ),
        (
            "Al final la API del catálogo lleva GraphQL.",
            "Hemos decidido: nada de GraphQL, la API del catálogo va sin GraphQL.",
        ),
        (
            "On revient là-dessus : les rappels de créneaux tournent finalement sur Celery.",
            "C'est acté avec Henner : les rappels de créneaux tournent sur Dramatiq.",
        ),
        (
            "Finalement, l'API du catalogue passe à GraphQL.",
            "On a décidé : pas de GraphQL pour l'API du catalogue.",
        ),
        (
            "On second thought the search index stays in Postgres.",
            "The search index runs on Meilisearch from now on.",
        ),
        (
            "We're taking that back: invoices are sent by Postmark after all.",
            "Decided: invoices are sent with Mailjet.",
        ),
        (
            "after all we keep Jenkins for the nightly builds",
            "we'll use GitHub Actions for the nightly builds, decided today",
        ),
        (
            "We've changed our minds, the mobile app uses Expo",
            "Decision: the mobile app uses bare React Native",
        ),
        (
            "Die Bilder liegen jetzt doch auf MinIO.",
            "Entschieden: die Bilder liegen auf S3.",
        ),
        (
            "Kommando zurück, der Suchindex bleibt bei Postgres.",
            "Wir haben beschlossen: der Suchindex kommt auf Meilisearch.",
        ),
        (
            "Hemos cambiado de opinión: las fotos del catálogo van en MinIO.",
            "Decidido: las fotos del catálogo van en S3.",
        ),
        (
            "Changement de plan, on a changé d'avis : les photos du catalogue restent sur S3.",
            "Décidé avec Maëlle : les photos du catalogue passent sur MinIO.",
        ),
        (
            "We're going back on dropping Redis: the rate limiter uses Redis after all.",
            "No Redis for the rate limiter, that's settled.",
        ),
        (
            "The rate limiter doesn't use Redis after all.",
            "The rate limiter uses Redis, that's settled.",
        ),
    ],
)
def test_a_reversal_replaces_the_choice_about_the_same_subject(newer, older):
    assert reverses(newer, older)


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        (
            "We're going back on that: the slot reminders run on Celery after all.",
            "The slot reminders are sent at seven in the morning.",
        ),
        (
            "We're going back on that: the slot reminders run on Celery after all.",
            "The nightly export runs on Dramatiq.",
        ),
        (
            "The catalogue API gets GraphQL after all.",
            "The catalogue API gets GraphQL, decided on Monday.",
        ),
        (
            "The catalogue API gets GraphQL after all.",
            "The catalogue API gets ETags on every route.",
        ),
        (
            "The tests pass after all.",
            "The tests run on Python 3.12.",
        ),
        (
            "Should the slot reminders run on Celery after all?",
            "The slot reminders run on Dramatiq.",
        ),
        (
            "Finalement les tests passent.",
            "Les tests tournent sur Python 3.12.",
        ),
        (
            "The image uploads go to MinIO after all.",
            "The image uploads are limited to 20 MB.",
        ),
        (
            "The image uploads go to MinIO after all.",
            "Thumbnails of image uploads are made with sharp.",
        ),
        (
            "After all, the parser handles UNB segments.",
            "The parser is tested with real UNB segments on Fridays.",
        ),
        (
            "Wir nehmen doch Celery für die Erinnerungen.",
            "Die Rechnungen laufen auf Dramatiq.",
        ),
        (
            "al final el riego usa ESP32",
            "Los sensores de riego se calibran con agua destilada.",
        ),
        (
            "Finalement le client veut le bleu pour le bandeau.",
            "Le bandeau du client est sur deux lignes.",
        ),
        (
            "I'm back to work on the slot reminders.",
            "The slot reminders run on Dramatiq.",
        ),
        (
            "The slot reminders run on Celery.",
            "The slot reminders run on Dramatiq.",
        ),
        (
            "Das ist doch klar: die Tests laufen auf Python 3.12.",
            "Die Tests laufen auf Python 3.11.",
        ),
        (
            "We use Celery after all for the slot reminders",
            "We don't use Flower to monitor the Celery workers of slot reminders",
        ),
    ],
)
def test_a_reversal_leaves_other_statements_alone(newer, older):
    assert not reverses(newer, older)


def test_a_text_that_returns_to_nothing_yields_no_words():
    assert find_returned("We moved from yarn to pnpm.") == ()
