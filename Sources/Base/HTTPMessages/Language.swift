/// The languages of the messages to the user. Raw values are their language tags (RFC 5646).
public enum Language: String, Sendable, CaseIterable {
    case english = "en"
    case russian = "ru"

    /// The language that the values of `Accept-Language` prefer; English if they name none of the languages.
    public init(accepting values: [String]) {
        let best = LanguagePreference(parsing: values).best(of: Language.allCases.map(\.rawValue))
        self = best.flatMap(Language.init) ?? .english
    }

    /// The language of the user's locale: `LC_ALL`, or else `LC_MESSAGES`, or else `LANG`.
    public init(environment: [String: String]) {
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        self = locale?.hasPrefix("ru") == true ? .russian : .english
    }
}
