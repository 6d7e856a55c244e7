"""Which facts a sentence sets or ends."""

import pytest

from pipeline.features.capture.slots import find_slot
from pipeline.kernel.records import FactKey

STAGING, PRODUCTION = FactKey("staging", "port"), FactKey("production", "port")
PREPROD, BROKER = FactKey("redis_de_préprod", "port"), FactKey("broker_mqtt_de_casa", "port")
HOST, TIMEOUT, OWNER = FactKey("staging", "host"), FactKey("checkout", "timeout"), FactKey("billing", "owner")
EDITOR, CITY = FactKey("user", "editor"), FactKey("user", "city")
EMPLOYER, NAME = FactKey("user", "employer"), FactKey("user", "name")
MANAGER = FactKey("project", "package_manager")
KNOWN = {
    STAGING: 5433,
    PRODUCTION: 5432,
    PREPROD: 6390,
    FactKey("redis_de_prod", "port"): 6391,
    BROKER: 1884,
    HOST: "db1.internal",
    TIMEOUT: 30,
    OWNER: "Marta",
    EDITOR: "Vim",
    CITY: "Tampa",
    EMPLOYER: "Orsel",
    NAME: "Ada",
    MANAGER: "npm",
}


def read(sentence, known=KNOWN):
    slot = find_slot(sentence, known)
    return None if slot is None else (slot.keys, slot.value, slot.is_certain)


@pytest.mark.parametrize(
    ("said", "slot"),
    [
        ("Staging runs on port 6543 now.", ("staging", "port", 6543)),
        ("my staging is on 6543 now", ("staging", "port", 6543)),
        ("fyi my staging database is on port 6543 now, not 5432", ("staging_database", "port", 6543)),
        ("fyi the staging database listens on port 5433", ("staging_database", "port", 5433)),
        ("Staging's db port is 6543 now.", ("staging_db", "port", 6543)),
        ("the port of the staging database is 6543", ("staging_database", "port", 6543)),
        ("Postgres on production listens on 6432", ("postgres_on_production", "port", 6432)),
        ("Staging läuft jetzt auf Port 6543.", ("staging", "port", 6543)),
        ("Der Port der Staging-Datenbank ist 6543.", ("staging_datenbank", "port", 6543)),
        ("Staging está ahora en el puerto 6543.", ("staging", "port", 6543)),
        ("el broker MQTT de casa está en el puerto 1884", ("broker_mqtt_de_casa", "port", 1884)),
        ("Le Redis de préprod écoute sur le port 6390.", ("redis_de_préprod", "port", 6390)),
        ("le port du Redis de préprod est 6391", ("redis_de_préprod", "port", 6391)),
        ("The API is version 2.3", ("api", "version", "2.3")),
        ("Marta owns the billing service", ("billing", "owner", "Marta")),
        ("it runs on port 80", None),
        ("Never run staging on port 80", None),
        ("Tests need port 8080 open", None),
        ("Let's put staging on port 7777", None),
        ("the tests say staging is on port 6543", None),
        ("the sensor sends a reading every 40 ms", None),
        ("The shop has about 4000 orders a day", None),
        ("the meeting is on 12 May", None),
    ],
)
def test_a_new_fact_is_stated_with_a_clear_subject(said, slot):
    found = find_slot(said, {})
    assert (None if found is None else (found.keys[0].subject, found.keys[0].attribute, found.value)) == slot


@pytest.mark.parametrize(
    ("said", "key", "value"),
    [
        ("Staging runs on port 6543 now.", STAGING, 6543),
        ("Staging's db port is 6543 now.", STAGING, 6543),
        ("staging db port: 6543", STAGING, 6543),
        ("btw the port of the staging database is 6543, in case I didn't say so", STAGING, 6543),
        ("staging port changed again, the database is on 7543 since this morning", STAGING, 7543),
        ("Staging no longer runs on 5433 but on 6543", STAGING, 6543),
        ("Staging läuft jetzt auf Port 6543.", STAGING, 6543),
        ("production ist jetzt auf 6432 statt 5432", PRODUCTION, 6432),
        ("Staging escucha ahora en el puerto 6543", STAGING, 6543),
        ("el broker MQTT de casa ha pasado al puerto 1894", BROKER, 1894),
        ("Staging tourne maintenant sur le port 6543", STAGING, 6543),
        ("Le Redis de préprod est passé sur le port 6395.", PREPROD, 6395),
        ("the checkout timeout is 45 now", TIMEOUT, 45),
        ("we moved the checkout timeout from 30 to 45", TIMEOUT, 45),
        ("the staging host is db2.internal now", HOST, "db2.internal"),
        ("the owner of billing is Ana now", OWNER, "Ana"),
        ("Jonas owns the billing service", OWNER, "Jonas"),
        ("I use Helix now", EDITOR, "Helix"),
        ("I've switched editors, I use Zed now", EDITOR, "Zed"),
        ("Ich nutze jetzt Helix", EDITOR, "Helix"),
        ("Ich bin von Vim auf Helix umgestiegen", EDITOR, "Helix"),
        ("Uso Helix ahora", EDITOR, "Helix"),
        ("Me he pasado de Vim a Helix", EDITOR, "Helix"),
        ("J'utilise Helix maintenant", EDITOR, "Helix"),
        ("je suis revenue à Neovim comme éditeur, définitivement", EDITOR, "Neovim"),
        ("I moved to Metz last weekend, finally", CITY, "Metz"),
        ("Ich wohne jetzt in Frankfurt am Main", CITY, "Frankfurt am Main"),
        ("finally, I've moved to Metz", CITY, "Metz"),
        ("I live in Metz since May", CITY, "Metz"),
        ("I've been living in Metz for two years now", CITY, "Metz"),
        ("Letztes Wochenende bin ich endlich nach Metz gezogen", CITY, "Metz"),
        ("Ich wohne seit Mai in Metz", CITY, "Metz"),
        ("Seit letztem Jahr lebe ich in Bad Homburg", CITY, "Bad Homburg"),
        ("Me mudé a Metz el fin de semana pasado, por fin", CITY, "Metz"),
        ("Desde el verano pasado vivo en San Sebastián", CITY, "San Sebastián"),
        ("J'ai enfin déménagé à Metz le week-end dernier", CITY, "Metz"),
        ("Depuis mai j'habite à Metz", CITY, "Metz"),
        ("I'm using Zed since last week", EDITOR, "Zed"),
        ("I've been using Zed for two weeks now", EDITOR, "Zed"),
        ("my new editor is Zed", EDITOR, "Zed"),
        ("Seit letzter Woche nutze ich Zed", EDITOR, "Zed"),
        ("Desde mayo uso Zed", EDITOR, "Zed"),
        ("mon nouvel éditeur est Zed", EDITOR, "Zed"),
        ("I started at Nordkai on Monday, finally", EMPLOYER, "Nordkai"),
        ("Ich habe im Mai bei Nordkai angefangen", EMPLOYER, "Nordkai"),
        ("He empezado en Nordkai esta semana", EMPLOYER, "Nordkai"),
        ("J'ai rejoint Nordkai en mai", EMPLOYER, "Nordkai"),
        ("Call me Jule from now on, finally", NAME, "Jule"),
        ("Ich heiße seit Mai Mira Holt", NAME, "Mira Holt"),
        ("ahora me llamo Mira", NAME, "Mira"),
        ("Je m'appelle désormais Mira Holt", NAME, "Mira Holt"),
        ("Vivo en San Sebastián ahora", CITY, "San Sebastián"),
        ("J'habite à Lyon, près de la gare", CITY, "Lyon"),
        ("we use pnpm now", MANAGER, "pnpm"),
        ("Wir nutzen jetzt pnpm", MANAGER, "pnpm"),
        ("Usamos pnpm ahora", MANAGER, "pnpm"),
        ("on utilise pnpm maintenant", MANAGER, "pnpm"),
    ],
)
def test_a_change_gives_a_known_fact_its_new_value(said, key, value):
    assert read(said) == ((key,), value, True)


@pytest.mark.parametrize(
    ("said", "keys"),
    [
        ("Staging has no port any more, it was switched off.", (STAGING,)),
        ("Staging doesn't have a port anymore.", (STAGING,)),
        ("Staging no longer runs on port 5433", (STAGING,)),
        ("there's no port on staging any more", (STAGING,)),
        ("Staging was switched off.", (STAGING, HOST)),
        ("Staging hat keinen Port mehr", (STAGING,)),
        ("Staging hat keinen Datenbankport mehr, die Instanz wurde abgeschaltet.", (STAGING,)),
        ("Staging ya no tiene puerto", (STAGING,)),
        ("ya no hay broker MQTT en casa, lo he apagado para siempre", (BROKER,)),
        ("Staging n'a plus de port", (STAGING,)),
        ("Il n'y a plus de Redis en préprod, on l'a éteint hier soir.", (PREPROD,)),
        ("I don't use Vim any more", (EDITOR,)),
        ("Ich nutze Vim nicht mehr", (EDITOR,)),
        ("Ya no uso Vim", (EDITOR,)),
        ("Je n'utilise plus Vim", (EDITOR,)),
        ("I no longer live in Tampa", (CITY,)),
        ("Wir nutzen npm nicht mehr", (MANAGER,)),
    ],
)
def test_a_negation_ends_the_value(said, keys):
    assert read(said) == (keys, None, True)


@pytest.mark.parametrize(
    ("said", "key", "value"),
    [
        ("I think staging moved to port 7000", STAGING, 7000),
        ("Staging will move to port 7000 tomorrow", STAGING, 7000),
        ("use port 7777 for staging", STAGING, 7777),
        ("vielleicht läuft Staging auf Port 7000", STAGING, 7000),
        ("maybe staging has no port any more", STAGING, None),
        ("I use Helix", EDITOR, "Helix"),
        ("Uso Helix", EDITOR, "Helix"),
        ("I'm in Metz now, for good", CITY, "Metz"),
        ("Ich bin jetzt in Metz", CITY, "Metz"),
        ("we use pnpm here", MANAGER, "pnpm"),
    ],
)
def test_a_doubtful_change_is_uncertain(said, key, value):
    assert read(said) == ((key,), value, False)


def test_a_hint_states_no_new_fact():
    assert read("I'm in Metz now, for good", {EDITOR: "Vim"}) is None


@pytest.mark.parametrize(
    "said",
    [
        "port 7000 on staging is blocked by the firewall",
        "the staging host is down",
        "Staging has no cache any more",
        "Staging has no Redis port any more",
        "the checkout timeout is between 45 and 60",
        "I use vim on servers",
        "I use Helix for notes",
        "I live in fear of this build",
        "we use uv here, the lock file is uv.lock and nothing gets installed with pip",
        "Antworte mir bitte immer auf Deutsch, wenn ich Deutsch schreibe.",
        "call me later",
        "my editor is broken",
        "I'm in a meeting now",
        "I moved to the office last week",
        "I moved the tests to tests/unit last weekend",
        "I'll move to Metz next month",
        "my parents moved to Metz last year",
        "we use yarn in new repositories",
        "wir sind letzte Woche nach Metz gezogen",
    ],
)
def test_similar_sounding_sentence_is_not_a_slot_value(said):
    assert read(said) is None


def test_the_port_of_a_part_is_another_fact():
    assert read("Redis on staging listens on port 6380") == ((FactKey("redis_on_staging", "port"),), 6380, True)
