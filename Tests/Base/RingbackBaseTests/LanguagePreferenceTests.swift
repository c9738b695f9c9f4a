import RingbackBase
import Testing

@Suite struct `The languages that a browser prefers` {
    @Test(
        arguments: [
            ("ru", "ru"), ("en", "en"), ("ru-RU,ru;q=0.9,en-US;q=0.8,en;q=0.7", "ru"), ("en-US,en;q=0.5", "en"),
            ("de,ru;q=0.2", "ru"), ("ru;q=0.5, en;q=0.501", "en"), ("RU-ru", "ru"), ("ru,en", "ru"), ("en,ru", "en"),
            ("ru;q=0,*", "en"), ("*", "en"), ("*;q=0.1,ru;q=0.2", "ru"), ("*;q=0.5, ru;q=0.2", "en"), ("de", nil),
            ("", nil), ("ru;q=0", nil), ("*;q=0", nil), ("\tru ; q=1.000\t", "ru"), ("ru;Q=0.1", "ru"),
            ("ru;q=0.", nil),
            ("zh-Hant-TW, ru-Cyrl-RU;q=0.001", "ru"),
        ] as [(String, String?)])
    func `the one with the highest weight is taken`(field: String, language: String?) {
        #expect(LanguagePreference(parsing: [field]).best(of: ["en", "ru"]) == language)
    }

    @Test(arguments: [
        "ru;q=2", "ru;q=1.001", "ru;q=0.1234", "ru;q=-1", "ru;q=", "ru;q", "ru;x=1", "ru;q=1;q=1", "ru_RU",
        "russian-language-x",
        "-ru", "ru-", "ru--RU", "ru ru", "r\u{443}", "**", "*-ru", ";q=1", "ru;q=1e0", "ru;q=0,5", "\"ru\"",
    ])
    func `an element with a mistake is passed over`(element: String) {
        #expect(LanguagePreference(parsing: [element]).best(of: ["ru"]) == nil)
        #expect(LanguagePreference(parsing: ["\(element), en;q=0.1"]).best(of: ["ru", "en"]) == "en")
    }

    @Test(
        arguments: [
            (600, "10 minutes", "10 минут"), (60, "1 minute", "1 минуту"), (90, "90 seconds", "90 секунд"),
            (3_600, "1 hour", "1 час"), (7_200, "2 hours", "2 часа"), (0, "0 seconds", "0 секунд"),
            (1, "1 second", "1 секунду"), (660, "11 minutes", "11 минут"), (1_260, "21 minutes", "21 минуту"),
        ])
    func `a number of seconds is named in its largest whole unit`(seconds: Int, english: String, russian: String) {
        #expect(Language.english.span(seconds) == english && Language.russian.span(seconds) == russian)
    }

    @Test func `several lines are one list`() {
        #expect(LanguagePreference(parsing: ["en;q=0.1", "ru;q=0.2"]).best(of: ["en", "ru"]) == "ru")
        #expect(LanguagePreference(parsing: []).best(of: ["en", "ru"]) == nil)
        #expect(LanguagePreference(parsing: ["en"]).best(of: []) == nil)
    }
}
