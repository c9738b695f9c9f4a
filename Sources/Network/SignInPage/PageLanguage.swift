public import RingbackBase

/// A language of the pages, by its tag (RFC 5646).
public enum PageLanguage: String, Sendable, CaseIterable {
    case english = "en"
    case russian = "ru"

    /// The language that a request prefers (`Accept-Language`); English if it names none of them.
    public init(preferredBy fields: HTTPFields) {
        let preference = LanguagePreference(parsing: fields[all: "Accept-Language"])
        self = preference.best(of: PageLanguage.allCases.map(\.rawValue)).flatMap(PageLanguage.init) ?? .english
    }
}
