/// The languages that a user wants to read, from the request's `Accept-Language` (RFC 9110 section 12.5.4).
public struct LanguagePreference: Sendable {
    private struct Range: Sendable {
        /// The primary subtag in lower case, or `*`.
        let language: String
        /// In thousandths.
        let quality: Int
    }

    private let ranges: [Range]

    /// Invalid elements are ignored.
    public init(parsing values: [String]) {
        ranges = values.flatMap { $0.utf8.split(separator: UInt8(ascii: ",")) }.compactMap(LanguagePreference.range)
    }

    /// The offered language with the highest weight, of equal ones that which the field names first. Nil if it names
    /// none, or only with the weight 0. `offered` are primary subtags in lower case: `ru-RU` fits `ru` (RFC 4647
    /// section 3.4).
    public func best(of offered: [String]) -> String? {
        var best: (language: String, quality: Int, place: Int)?
        for language in offered {
            let named = ranges.indices.filter { ranges[$0].language == language }
            let fitting = named.isEmpty ? ranges.indices.filter { ranges[$0].language == "*" } : named
            guard let quality = fitting.map({ ranges[$0].quality }).max(), quality > 0,
                let place = fitting.first(where: { ranges[$0].quality == quality })
            else { continue }
            if let best, (best.quality, -best.place) >= (quality, -place) { continue }
            best = (language, quality, place)
        }
        return best?.language
    }

    /// One element, such as `ru-RU;q=0.8`. Blanks around `;` are allowed.
    private static func range(_ element: Substring.UTF8View) -> Range? {
        let parts = element.split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false).map(trimmed)
        guard let tag = parts.first, parts.count <= 2, let language = primarySubtag(tag) else { return nil }
        guard parts.count == 2 else { return Range(language: language, quality: 1_000) }
        return quality(parts[1]).map { Range(language: language, quality: $0) }
    }

    private static func trimmed(_ text: Substring.UTF8View) -> Substring.UTF8View {
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        var text = text.drop(while: isBlank)
        while let last = text.last, isBlank(last) { text.removeLast() }
        return text
    }

    /// In lower case. Nil if the text is not a language range (RFC 4647 section 2.1).
    private static func primarySubtag(_ tag: Substring.UTF8View) -> String? {
        if tag.elementsEqual("*".utf8) { return "*" }
        let subtags = tag.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard let first = subtags.first, first.allSatisfy(\.isLetter),
            subtags.allSatisfy({ (1...8).contains($0.count) && $0.allSatisfy(\.isLetterOrDigit) })
        else { return nil }
        return String(decoding: first.map { $0 | 0x20 }, as: UTF8.self)
    }

    /// `q=0.8` in thousandths: 0 to 1 with at most three decimal places (RFC 9110 section 12.4.2).
    private static func quality(_ text: Substring.UTF8View) -> Int? {
        guard text.count >= 3, text.first.map({ $0 | 0x20 }) == UInt8(ascii: "q"),
            text.dropFirst().first == UInt8(ascii: "=")
        else { return nil }
        let number = text.dropFirst(2)
        let decimals = number.dropFirst(2)
        guard let whole = number.first, whole == UInt8(ascii: "0") || whole == UInt8(ascii: "1"),
            number.dropFirst().first ?? UInt8(ascii: ".") == UInt8(ascii: "."), decimals.count <= 3,
            decimals.allSatisfy(\.isDigit)
        else { return nil }
        var thousandths = 0
        for place in 0..<3 {
            thousandths = thousandths * 10 + (decimals.dropFirst(place).first.map { Int($0 - 0x30) } ?? 0)
        }
        guard whole == UInt8(ascii: "1") else { return thousandths }
        return thousandths == 0 ? 1_000 : nil
    }
}

/// Of the messages to the user. Raw values are language tags (RFC 5646).
public enum Language: String, Sendable, CaseIterable {
    case english = "en"
    case russian = "ru"

    /// That which `Accept-Language` prefers; English if it names none of them.
    public init(accepting values: [String]) {
        let best = LanguagePreference(parsing: values).best(of: Language.allCases.map(\.rawValue))
        self = best.flatMap(Language.init) ?? .english
    }

    /// Of the locale: `LC_ALL`, or else `LC_MESSAGES`, or else `LANG`.
    public init(environment: [String: String]) {
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        self = locale?.hasPrefix("ru") == true ? .russian : .english
    }
}

extension Language {
    /// A number of seconds in its largest whole unit, as the object of "within": `10 minutes`, `90 seconds`, `1 hour`.
    public func span(_ seconds: Int) -> String {
        let (number, unit) =
            seconds > 0 && seconds % 3_600 == 0
            ? (seconds / 3_600, 2) : seconds > 0 && seconds % 60 == 0 ? (seconds / 60, 1) : (max(0, seconds), 0)
        switch self {
        case .english: return "\(number) \(["second", "minute", "hour"][unit])\(number == 1 ? "" : "s")"
        case .russian:
            let forms = [["секунду", "секунды", "секунд"], ["минуту", "минуты", "минут"], ["час", "часа", "часов"]]
            let isTeen = (11...14).contains(number % 100)
            let form = isTeen ? 2 : number % 10 == 1 ? 0 : (2...4).contains(number % 10) ? 1 : 2
            return "\(number) \(forms[unit][form])"
        }
    }
}
