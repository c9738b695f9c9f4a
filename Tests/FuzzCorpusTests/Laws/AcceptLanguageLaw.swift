import RingbackBase

/// The field `Accept-Language`: which of the languages of a page a browser gets.
enum AcceptLanguageLaw {
    private static let offered = ["en", "ru", "de"]

    static func check(_ bytes: [UInt8]) throws {
        let text = String(decoding: bytes, as: UTF8.self)
        let best = LanguagePreference(parsing: [text]).best(of: offered)
        try hold("only what is offered is chosen", best.map { offered.contains($0) } ?? true)
        try hold("what is chosen is named", best == nil || text.contains("*") || text.lowercased().contains(best ?? ""))
        // A list may be cut into lines at its commas.
        let lines = text.utf8.split(separator: UInt8(ascii: ",")).map { String(decoding: $0, as: UTF8.self) }
        try hold("lines are one list", LanguagePreference(parsing: lines).best(of: offered) == best)
        try hold(
            "letter case means nothing", LanguagePreference(parsing: [text.asciiUppercased]).best(of: offered) == best)
        let refusal = "\(text),en;q=0,ru;q=0,de;q=0"
        if let still = LanguagePreference(parsing: [refusal]).best(of: offered) {
            try hold("a refusal takes the asterisk away", text.lowercased().contains(still))
        }
        for language in offered {
            let alone = LanguagePreference(parsing: [text]).best(of: [language])
            try hold("a language alone is chosen or not", alone == nil || alone == language)
            if language == best { try hold("the best one is acceptable alone", alone == language) }
        }
    }
}

extension String {
    fileprivate var asciiUppercased: String {
        String(decoding: utf8.map { (0x61...0x7A).contains($0) ? $0 & 0xDF : $0 }, as: UTF8.self)
    }
}
