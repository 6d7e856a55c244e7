"""The recall lab in a browser: ask, tune, compare, and ask why."""

import re

from playwright.sync_api import expect


def test_a_question_is_tuned_compared_and_shared_by_its_address(opened, sample):
    page = opened(sample, "/w/default/recall")
    page.get_by_label("Question").fill("invoice number sequence")
    page.get_by_role("button", name="Recall").click()
    hits = page.locator(".hit")
    expect(hits).to_have_count(10)
    expect(hits.first).to_contain_text("invoice number")
    expect(hits.first.locator("svg.stack rect").first).to_be_visible()
    page.get_by_role("main").get_by_text("Settings", exact=True).click()
    page.get_by_label("Results", exact=True).fill("4")
    page.get_by_label("Channels", exact=True).select_option("lexical")
    page.get_by_role("button", name="Apply").click()
    expect(hits).to_have_count(4)
    expect(page.locator(".timing-of summary")).to_contain_text("dense off")
    page.get_by_role("link", name="Compare with other settings").click()
    expect(page.get_by_role("group", name="B")).to_be_visible()
    page.get_by_label("Channels", exact=True).nth(1).select_option("")
    page.get_by_role("button", name="Apply").click()
    expect(page).to_have_url(
        f"{sample.url}/w/default/recall?q=invoice+number+sequence&k=4&only=lexical&compare=1&b_k=4"
    )
    expect(page.locator("section", has_text="B: 4 results")).to_contain_text("=")
    shared = opened(sample, page.url.removeprefix(sample.url))
    expect(shared.locator(".hit")).to_have_count(8)


def test_the_same_memory_is_seen_in_both_lists(opened, sample):
    page = opened(sample, "/w/default/recall?q=invoice+number+sequence&compare=1&b_only=lexical")
    first = page.locator("section").filter(has=page.locator("#trial-A")).locator(".hit").first
    first.hover()
    identity = first.get_attribute("data-memory")
    expect(page.locator(f".hit.same[data-memory='{identity}']")).to_have_count(2)


def test_why_not_this_one_is_answered_in_words(opened, sample):
    page = opened(sample, "/w/default/recall?q=invoice+number+sequence&k=3")
    page.get_by_label("Missing a memory?").fill("tariff of 2026")
    page.get_by_role("button", name="Explain", exact=True).click()
    card = page.locator("section.card")
    expect(card).to_contain_text("Matching memories")
    card.get_by_role("link", name="Explain").first.click()
    expect(card.locator("li").first).to_contain_text(re.compile("found: number|ranked|lexical:"))


def test_on_a_phone_nothing_runs_off_the_side(opened, sample):
    page = opened(sample, "/w/default/recall?q=lock&compare=1&why=lock", width=360)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
