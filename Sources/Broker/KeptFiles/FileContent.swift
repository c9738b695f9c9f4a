internal import Adapters
internal import BrokerCore
internal import RingbackBase

extension KeptFile {
    /// What the file contains with this token.
    ///
    /// A token alone has no line break after it, since the libraries of cloud services send the whole file.
    ///
    /// - Parameter expiresAt: nil for a token without a stated lifetime.
    /// - Throws: ``FileReason`` for a token with bytes outside 0x21 to 0x7E: they could change the line's meaning.
    func content(_ issued: IssuedToken, expiresAt: WallInstant?) throws(FileReason) -> [UInt8] {
        let excess = key.excess(of: issued.token)
        guard excess.isEmpty else {
            throw .tooMuchScope(account, excess: excess)
        }
        let bytes = issued.token.value.revealedBytes()
        guard !bytes.isEmpty, bytes.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw .tokenCharacters(account)
        }
        let token = String(decoding: bytes, as: UTF8.self)
        switch format {
        case .token, .idToken: return Array(bytes)
        case .header:
            let type = issued.token.type
            // The token type is text from the provider.
            guard type.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
                throw .typeCharacters(account)
            }
            return Array("Authorization: \(type.lowercased() == "bearer" ? "Bearer" : type) \(token)\n".utf8)
        case .netrc:
            do throws(TokenLine.Failure) {
                return Array("\(try TokenLine.netrc(host: host, user: username, token: token))\n".utf8)
            } catch {
                throw FileReason.line(cause: error.reason)
            }
        case .env: return Array("\(TokenLine.assignment(to: variable, token))\n".utf8)
        case .json:
            var object = JSONObject([
                .init("account", .string(account.rawValue)), .init("access_token", .string(token)),
                .init("token_type", .string(issued.token.type)),
            ])
            object["scope"] = issued.scope.map { .string($0) }
            object["issuer"] = .string(issued.issuer)
            object["expires_at"] = expiresAt.map { .integer($0.seconds) }
            return JSON.object(object).serialized() + [UInt8(ascii: "\n")]
        }
    }
}
