/// The languages of the sentences for the user, by their tags (RFC 5646).
public enum Language: String, Sendable, CaseIterable {
    case english = "en"
    case russian = "ru"

    /// The one that the values of `Accept-Language` prefer; English if they name neither.
    public init(accepting values: [String]) {
        let best = LanguagePreference(parsing: values).best(of: Language.allCases.map(\.rawValue))
        self = best.flatMap(Language.init) ?? .english
    }

    /// From the user's locale: `LC_ALL`, else `LC_MESSAGES`, else `LANG`.
    public init(environment: [String: String]) {
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].lazy.compactMap { environment[$0] }.first { !$0.isEmpty }
        self = locale?.hasPrefix("ru") == true ? .russian : .english
    }
}
