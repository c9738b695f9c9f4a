public import RingbackBase

public typealias PageLanguage = Language

extension Language {
    /// From `Accept-Language`; English if it names none of them.
    public init(preferredBy fields: HTTPFields) { self.init(accepting: fields[all: "Accept-Language"]) }
}
