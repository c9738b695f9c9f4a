/// pnpm's `tokenHelper`: a program without arguments, whose output is the value of the field `Authorization`. The registry
/// is in the program's name, since pnpm says it in no other way, and its scheme in none: `pnpm-ringback-npm.example.org`, with a port
/// `pnpm-ringback-npm.example.org:8443`, and with a path `pnpm-ringback-npm.example.org%2Fteam`.
public struct PnpmToken: Sendable, Equatable {
    /// How the program's name begins.
    public static let prefix = "pnpm-ringback-"

    public let request: AdapterRequest

    /// - Parameter name: the program's name, without its directory.
    /// - Throws: for a name that says no registry.
    public init(program name: String) throws(AdapterFailure) {
        let registry = name.dropFirst(PnpmToken.prefix.utf8.count)
        let place = registry.replacing("%2F", with: "/").replacing("%2f", with: "/")
        guard name.hasPrefix(PnpmToken.prefix), !registry.isEmpty, !place.hasPrefix("/"), !registry.contains("/"),
            !place.contains("@")
        else { throw AdapterFailure("The program's name says no registry.") }
        request = try AdapterRequest(withoutScheme: String(place))
    }

    /// The answer. Older versions of pnpm send it as it is; newer ones add `Bearer` only to a token without a scheme.
    ///
    /// - Throws: for a token that cannot be in a header field, and for an origin that wants another field.
    public func answer(_ credential: AdapterCredential) throws(AdapterFailure) -> [UInt8] {
        Array("\(try credential.authorization(for: "pnpm"))\n".utf8)
    }
}
