public import RingbackBase

public typealias PageLanguage = Language

extension Language {
    /// From `Accept-Language`; English if it names none of them.
    public init(preferredBy fields: HTTPFields) { self.init(accepting: fields[all: "Accept-Language"]) }

    /// Before the user's address or name.
    public var signedInAs: String { self == .russian ? "Вы вошли как" : "You are signed in as" }
}
