internal import StrictJSON

/// The protocol of cargo's credential providers, version 1 (cargo 1.74 and later): lines of JSON. The provider says which
/// versions it knows, and answers each request with a line.
public struct CargoCredential: Sendable, Equatable {
    /// The most bytes of a line that are read.
    public static let maxLine = 65_536
    /// What the provider says first.
    public static let hello = Array(#"{"v":[1]}"#.utf8) + [0x0A]

    /// Why there is no token, as the protocol names it.
    public enum Refusal: Sendable, Equatable {
        /// No origin is configured for the registry, or its URL is not one that a token may be sent to. cargo asks
        /// the next provider.
        case urlNotSupported
        /// `cargo login`, `cargo logout` and what later versions add. cargo asks no other provider.
        case operationNotSupported
        /// A sentence for the user.
        case other(String)
    }

    public let request: AdapterRequest
    /// False for `cargo login`, `cargo logout` and what later versions add.
    public let wantsToken: Bool

    /// Why a request gets no token.
    public struct Refused: Error, Sendable, Equatable {
        public let refusal: Refusal
    }

    /// Reads a request.
    ///
    /// - Throws: ``Refused`` for one that is answered without a token.
    public init(reading line: [UInt8]) throws(Refused) {
        guard line.count <= CargoCredential.maxLine else { throw Refused(refusal: .other("The request is too long.")) }
        let json: JSON
        do throws(JSONError) {
            json = try JSON(parsing: line)
        } catch {
            throw Refused(refusal: .other("The request is not valid JSON: \(error)."))
        }
        guard json["v"]?.integer == 1 else {
            throw Refused(refusal: .other("The request has a version of the protocol that is not known."))
        }
        wantsToken = json["kind"] == "get"
        guard let index = json["registry"]?["index-url"]?.string else {
            throw Refused(refusal: .other("The request names no registry."))
        }
        let url = index.hasPrefix("sparse+") ? String(index.dropFirst("sparse+".count)) : index
        do throws(AdapterFailure) {
            request = try AdapterRequest(web: url)
        } catch {
            throw Refused(refusal: .urlNotSupported)
        }
    }

    /// The answer with a token, which cargo sends as it is in the field `Authorization`.
    ///
    /// - Throws: for a token that cannot be in a header field, and for an origin that wants another field.
    public func answer(_ credential: AdapterCredential) throws(AdapterFailure) -> [UInt8] {
        var answer = JSONObject([
            .init("kind", "get"), .init("token", .string(try credential.authorization(for: "cargo"))),
            .init("cache", credential.expiresAt == nil ? "session" : "expires"),
        ])
        answer["expiration"] = credential.expiresAt.map { .integer($0) }
        answer["operation_independent"] = true
        return CargoCredential.line(["Ok": .object(answer)])
    }

    /// The answer without a token.
    public static func answer(_ refusal: Refusal) -> [UInt8] {
        let error: JSON =
            switch refusal {
            case .urlNotSupported: ["kind": "url-not-supported"]
            case .operationNotSupported: ["kind": "operation-not-supported"]
            case .other(let text): ["kind": "other", "message": .string(text), "caused-by": []]
            }
        return line(["Err": error])
    }

    private static func line(_ json: JSON) -> [UInt8] { json.serialized() + [0x0A] }
}
