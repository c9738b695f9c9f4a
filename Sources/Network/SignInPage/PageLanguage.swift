public import RingbackBase

/// A language of the pages.
public typealias PageLanguage = Language

extension Language {
    /// The language that a request prefers (`Accept-Language`); English if it names none of them.
    public init(preferredBy fields: HTTPFields) { self.init(accepting: fields[all: "Accept-Language"]) }
}
