internal import Encodings
internal import StrictJSON

/// The protocol of credential helpers that Bazel and other build tools run (the credential-helper-spec of EngFlow): the
/// word `get`, a URI as JSON on standard input, header fields as JSON. An error is a text on standard error and a status.
public struct BazelCredential: Sendable, Equatable {
    /// The most bytes that are read.
    public static let maxInput = 65_536

    public let request: AdapterRequest

    /// Reads the input of `get`. Members that are not known are left out, as the protocol says.
    ///
    /// - Throws: for input that is no JSON object, has a member twice or no URI of a web server.
    public init(reading input: [UInt8]) throws(AdapterFailure) {
        guard input.count <= BazelCredential.maxInput else { throw AdapterFailure("The request is too long.") }
        let json: JSON
        do throws(JSONError) {
            json = try JSON(parsing: input)
        } catch {
            throw AdapterFailure("The request is not valid JSON: \(error).")
        }
        guard let uri = json["uri"]?.string else { throw AdapterFailure("The request has no member “uri”.") }
        request = try AdapterRequest(web: uri)
    }

    /// The answer: each field with its values, and until when they may be kept.
    ///
    /// - Throws: for a token or a field that is not one.
    public func answer(_ credential: AdapterCredential) throws(AdapterFailure) -> [UInt8] {
        var headers = JSONObject()
        for (name, value) in try credential.fields() {
            headers[name] = .array((headers[name]?.array ?? []) + [.string(value)])
        }
        var answer = JSONObject([.init("headers", .object(headers))])
        answer["expires"] = credential.expiresAt.map { .string(Timestamp.text(of: $0)) }
        return JSON.object(answer).serialized() + [0x0A]
    }
}
