internal import COpenSSL
internal import Cryptography
public import RingbackBase

/// A client of the user's keyring (gnome-keyring, KWallet, KeePassXC). It stores, finds and deletes Ringback's own keys
/// and cannot request secrets of other programs. Every call opens a connection of its own, blocks its thread and has a
/// timeout: some seconds for each step, and ``promptTimeout`` for a prompt.
struct SecretServiceClient: Sendable {
    static let name = "org.freedesktop.secrets"
    static let label = "Ringback vault key"
    /// The maximum size of a secret in bytes.
    static let maxSecret = 1_024
    /// How long the user may take to react to the keyring's prompt.
    static let promptTimeout: Duration = .seconds(90)

    var place = BusPlace.session()
    var promptTimeout = SecretServiceClient.promptTimeout

    /// True if the text is a valid identifier of a key: 1 to 128 letters, digits, `.`, `_` and `-`.
    static func isIdentifier(_ text: String) -> Bool {
        (1...128).contains(text.utf8.count) && text.utf8.allSatisfy { $0.isLetterOrDigit || "._-".utf8.contains($0) }
    }

    /// True if the default collection is locked: the service would prompt the user before it stores a key. Nobody is
    /// prompted here, and a service that is not running is started if the bus can activate it. Throws `unavailable` if
    /// keys cannot be stored: there is no bus, no service or no default collection.
    func isLocked() throws(SecretServiceError) -> Bool {
        try converse { () throws in
            let conversation = try begin(mayPrompt: false)
            return try conversation.isLocked(try conversation.defaultCollection())
        }
    }

    func read(id: String, mayPrompt: Bool = false) throws(SecretServiceError) -> Secret {
        try converse(id) { () throws in
            let conversation = try begin(mayPrompt: mayPrompt)
            return try conversation.read(try conversation.unlockedItem(id))
        }
    }

    /// Stores a secret in the default collection and reads it back to verify it. Throws `failed` if the identifier is
    /// in use: the stored value may be the only copy of a key that is needed.
    func create(id: String, secret: Secret, mayPrompt: Bool = false) throws(SecretServiceError) {
        guard (1...SecretServiceClient.maxSecret).contains(secret.count) else {
            throw .failed(reason: "a secret has 1 to \(SecretServiceClient.maxSecret) bytes")
        }
        try converse(id) { () throws in
            let conversation = try begin(mayPrompt: mayPrompt)
            guard try conversation.find(id) == nil else {
                throw SecretServiceError.failed(reason: "the keyring has a key with this identifier already")
            }
            let collection = try conversation.defaultCollection()
            if try conversation.isLocked(collection) { try conversation.unlock(collection) }
            try conversation.create(id, secret, in: collection)
            // A new session with another key: a value that was garbled in transit could otherwise be garbled back when
            // it is read.
            let verification = try begin(mayPrompt: mayPrompt)
            let item = try verification.unlockedItem(id)
            guard try verification.read(item) == secret else {
                try? verification.delete(item)
                throw SecretServiceError.failed(reason: "the keyring did not store the key unchanged")
            }
        }
    }

    func delete(id: String, mayPrompt: Bool = false) throws(SecretServiceError) {
        try converse(id) { () throws in
            let conversation = try begin(mayPrompt: mayPrompt)
            try conversation.delete(try conversation.unlockedItem(id))
            guard try conversation.find(id) == nil else {
                throw SecretServiceError.failed(reason: "the keyring did not delete the key")
            }
        }
    }

    private func begin(mayPrompt: Bool) throws(BusFailure) -> SecretServiceConversation {
        try SecretServiceConversation(try BusConnection(place), promptTimeout: mayPrompt ? promptTimeout : nil)
    }

    private func converse<Answer>(
        _ id: String? = nil, _ steps: () throws -> Answer
    ) throws(SecretServiceError) -> Answer {
        if let id, !SecretServiceClient.isIdentifier(id) { throw .failed(reason: "not an identifier of a key") }
        do {
            return try steps()
        } catch {
            throw (error as? BusFailure).map { SecretServiceError($0) } ?? error as? SecretServiceError
                ?? .failed(reason: "the Secret Service could not be asked")
        }
    }
}

/// Why a request to the Secret Service failed. Reasons are our own texts, at most with the name of a D-Bus error, so
/// they contain no secret.
public enum SecretServiceError: Error, Sendable, Equatable, CustomStringConvertible {
    /// There is no bus, no service, or the service does not respond.
    case unavailable(reason: String)
    /// The key is locked. The service would prompt the user first.
    case locked
    case notFound
    case dismissed
    case failed(reason: String)

    public var description: String {
        switch self {
        case .unavailable(let reason), .failed(let reason): reason
        case .locked: "the keyring is locked"
        case .notFound: "the keyring does not hold this key"
        case .dismissed: "the keyring's prompt was dismissed"
        }
    }

    init(_ failure: BusFailure) {
        self =
            switch failure {
            case .noLibrary: .unavailable(reason: "libsystemd, which talks to the session bus, is not installed")
            case .noBus: .unavailable(reason: "there is no session bus")
            case .lost: .unavailable(reason: "the connection to the session bus was lost")
            case .timedOut: .unavailable(reason: "the Secret Service does not respond")
            case .absent: .unavailable(reason: "no Secret Service is on the session bus")
            case .dismissed: .dismissed
            case .unanswered: .failed(reason: "the keyring's prompt was not completed in time")
            case .malformed: .failed(reason: "the Secret Service's reply violates its interface")
            case .refused(let name): SecretServiceError(name: name)
            }
    }

    private init(name: String) {
        switch name {
        case "org.freedesktop.Secret.Error.IsLocked": self = .locked
        case "org.freedesktop.Secret.Error.NoSuchObject", "org.freedesktop.DBus.Error.UnknownObject": self = .notFound
        case "org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner",
            "org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.Disconnected",
            "org.freedesktop.DBus.Error.NoServer", "org.freedesktop.DBus.Error.Timeout",
            "org.freedesktop.DBus.Error.TimedOut":
            self = .unavailable(reason: "the Secret Service ended or does not respond")
        case _ where name.hasPrefix("org.freedesktop.DBus.Error.Spawn."):
            self = .unavailable(reason: "the Secret Service could not be started (\(name))")
        default: self = .failed(reason: "the Secret Service returned the error \(name)")
        }
    }
}

/// Detects that the Secret Service starts, stops, locks or unlocks. Reporting too often does no harm, because the
/// receiver checks again.
struct SecretServiceSubject: BusSubject {
    let isDueAtOnce = true

    init(_ bus: BusConnection) throws(BusFailure) {
        let sender = "type='signal',sender='\(SecretServiceClient.name)',"
        try bus.addOwnerMatch(SecretServiceClient.name)
        // Services report a lock in one of these two ways, some in both.
        try bus.addMatch(sender + "interface='org.freedesktop.Secret.Service'")
        try bus.addMatch(
            sender + "interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',"
                + "arg0='org.freedesktop.Secret.Collection'")
    }

    func concerns(_ message: BusMessage) throws(BusFailure) -> Bool {
        for member in ["CollectionChanged", "CollectionCreated", "CollectionDeleted"]
        where message.isSignal(member, of: "org.freedesktop.Secret.Service") {
            return true
        }
        if message.isSignal("PropertiesChanged", of: "org.freedesktop.DBus.Properties") { return true }
        guard message.isSignal("NameOwnerChanged", of: "org.freedesktop.DBus") else { return false }
        return try message.readText() == SecretServiceClient.name
    }
}

/// How secrets are transferred within a session of the Secret Service: encrypted with an agreed key, so that a monitor
/// of the bus cannot read them. If the service supports no encryption, they are transferred unencrypted.
/// `dh-ietf1024-sha256-aes128-cbc-pkcs7` is the only algorithm of the interface. It protects against reading, not
/// against a man in the middle: the bus itself is trusted.
@safe final class SecretTransport {
    static let agreedAlgorithm = "dh-ietf1024-sha256-aes128-cbc-pkcs7"
    static let plainAlgorithm = "plain"
    private static let blockLength = 16

    /// The session's object path.
    let session: String
    /// The AES key; empty if secrets are transferred unencrypted.
    private var key: [UInt8]

    /// - Parameter key: 16 bytes; nil for a session without encryption.
    init(session: String, key: Secret?) {
        self.session = session
        self.key = key?.revealedBytes() ?? []
    }

    deinit { key.erase() }

    /// Encrypts a secret. Returns the parameters (an initialization vector) and the value of a secret structure.
    func seal(_ secret: Secret) throws(SecretServiceError) -> (parameters: [UInt8], value: [UInt8]) {
        var bytes = secret.revealedBytes()
        guard !key.isEmpty else { return ([], bytes) }
        defer { bytes.erase() }
        let vector = RandomToken.bytes(SecretTransport.blockLength)
        guard let value = crypt(bytes, vector, isSealing: true) else {
            throw .failed(reason: "libcrypto cannot encrypt")
        }
        return (vector, value)
    }

    /// Decrypts a secret structure; nil if the service used another key.
    func open(parameters: [UInt8], value: [UInt8]) -> Secret? {
        guard !key.isEmpty else { return Secret(bytes: value) }
        guard parameters.count == SecretTransport.blockLength else { return nil }
        guard var bytes = crypt(value, parameters, isSealing: false) else { return nil }
        defer { bytes.erase() }
        return Secret(bytes: bytes)
    }

    private func crypt(_ input: [UInt8], _ vector: [UInt8], isSealing: Bool) -> [UInt8]? {
        guard let context = unsafe EVP_CIPHER_CTX_new() else { return nil }
        defer { unsafe EVP_CIPHER_CTX_free(context) }
        var output = [UInt8](repeating: 0, count: input.count + SecretTransport.blockLength)
        var count: Int32 = 0
        var rest: Int32 = 0
        let direction: Int32 = isSealing ? 1 : 0
        guard unsafe EVP_CipherInit_ex(context, EVP_aes_128_cbc(), nil, key, vector, direction) == 1,
            unsafe EVP_CipherUpdate(context, &output, &count, input, Int32(input.count)) == 1
        else { return nil }
        defer { output.erase() }
        let isWhole = unsafe output.withUnsafeMutableBufferPointer { buffer in
            guard let start = buffer.baseAddress else { return false }
            return unsafe EVP_CipherFinal_ex(context, start + Int(count), &rest) == 1
        }
        ERR_clear_error()
        return isWhole ? Array(output[..<Int(count + rest)]) : nil
    }
}

/// Our side of a Diffie-Hellman key agreement in the second Oakley group (RFC 2409 section 6.2).
@safe final class KeyAgreement {
    private static let length = 128
    private let prime: OpaquePointer
    private let exponent: OpaquePointer
    let publicNumber: [UInt8]

    init() throws(SecretServiceError) {
        let refusal = SecretServiceError.failed(reason: "libcrypto cannot agree on a key")
        guard let prime = unsafe BN_get_rfc2409_prime_1024(nil) else { throw refusal }
        guard let exponent = unsafe BN_secure_new() else {
            unsafe BN_free(prime)
            throw refusal
        }
        unsafe self.prime = prime
        unsafe self.exponent = exponent
        unsafe BN_set_flags(exponent, BN_FLG_CONSTTIME)
        let isDrawn = unsafe BN_priv_rand_range(exponent, prime) == 1
        guard isDrawn, let number = unsafe KeyAgreement.power([2], exponent, prime) else {
            publicNumber = []
            throw refusal
        }
        publicNumber = number
    }

    deinit {
        unsafe BN_clear_free(exponent)
        unsafe BN_free(prime)
    }

    /// The shared AES key: HKDF with SHA-256 without salt and info (RFC 5869) over the shared number, padded to the
    /// prime's length. Nil for the public numbers 0, 1, p - 1 and those not below p, with which the key could be
    /// guessed.
    func key(with theirs: [UInt8]) -> Secret? {
        guard theirs.count <= KeyAgreement.length, isUsable(theirs) else { return nil }
        guard var shared = unsafe KeyAgreement.power(theirs, exponent, prime) else { return nil }
        defer { shared.erase() }
        return try? KeyDerivation.derive(from: Secret(bytes: shared), purpose: "", length: 16)
    }

    private func isUsable(_ number: [UInt8]) -> Bool {
        guard let value = unsafe BN_bin2bn(number, Int32(number.count), nil), let limit = unsafe BN_dup(prime) else {
            return false
        }
        defer {
            unsafe BN_free(value)
            unsafe BN_free(limit)
        }
        return unsafe BN_sub_word(limit, 1) == 1 && BN_cmp(value, BN_value_one()) > 0 && BN_cmp(value, limit) < 0
    }

    /// base^exponent mod prime, padded to the prime's length.
    private static func power(_ base: [UInt8], _ exponent: OpaquePointer, _ prime: OpaquePointer) -> [UInt8]? {
        guard let base = unsafe BN_bin2bn(base, Int32(base.count), nil), let result = unsafe BN_secure_new(),
            let context = unsafe BN_CTX_new()
        else { return nil }
        defer {
            unsafe BN_free(base)
            unsafe BN_clear_free(result)
            unsafe BN_CTX_free(context)
        }
        var bytes = [UInt8](repeating: 0, count: length)
        guard unsafe BN_mod_exp(result, base, exponent, prime, context) == 1,
            unsafe BN_bn2binpad(result, &bytes, Int32(length)) == Int32(length)
        else { return nil }
        return bytes
    }
}

// The encoding of the Secret Service's results between helper and daemon, the same for both directions.

extension SecretServiceError {
    var members: JSONObject {
        switch self {
        case .unavailable(let reason): ["error": "unavailable", "reason": reason]
        case .locked: ["error": "locked"]
        case .notFound: ["error": "not_found"]
        case .dismissed: ["error": "dismissed"]
        case .failed(let reason): ["error": "failed", "reason": reason]
        }
    }

    init?(members: JSONObject) {
        let reason = members["reason"]?.string ?? ""
        switch members["error"]?.string {
        case "unavailable": self = .unavailable(reason: reason)
        case "locked": self = .locked
        case "not_found": self = .notFound
        case "dismissed": self = .dismissed
        case "failed": self = .failed(reason: reason)
        default: return nil
        }
    }
}

// The user's keyring, through the helper. Each call has a timeout. A failure of the Secret Service is thrown as
// ``HelperError/secretService(_:)``.
extension HelperConnection {
    /// A request takes several steps of a few seconds each.
    private static let timeout: Duration = .seconds(30)

    /// True if the keyring is locked, without prompting the user. A service that D-Bus can activate is started. Throws
    /// `unavailable` if no key can be stored.
    public func isKeyringLocked() async throws(HelperError) -> Bool {
        guard let isLocked = try await ask("status").members["locked"]?.bool else { throw .ended }
        return isLocked
    }

    /// The key with this identifier. If it is locked, it is unlocked first; a prompt is shown only if `mayPrompt` is
    /// true (at most 90 s). Throws `notFound` if there is no such key and `locked` if it stays locked.
    public func readKey(id: String, mayPrompt: Bool = false) async throws(HelperError) -> Secret {
        guard let secret = try await ask("read", id: id, mayPrompt: mayPrompt).secret else { throw .ended }
        return secret
    }

    /// Stores a key of 1 to 1,024 bytes under an identifier that is not in use (1 to 128 letters, digits, `.`, `_` and
    /// `-`), and reads it back to verify it. Throws also if the identifier is in use.
    public func createKey(id: String, key: Secret, mayPrompt: Bool = false) async throws(HelperError) {
        guard (1...SecretServiceClient.maxSecret).contains(key.count) else {
            throw .secretService(.failed(reason: "a secret has 1 to \(SecretServiceClient.maxSecret) bytes"))
        }
        _ = try await ask("create", id: id, mayPrompt: mayPrompt, secret: key)
    }

    /// Deletes the key with this identifier. Throws `notFound` if there is none.
    public func deleteKey(id: String, mayPrompt: Bool = false) async throws(HelperError) {
        _ = try await ask("delete", id: id, mayPrompt: mayPrompt)
    }

    private func ask(
        _ verb: String, id: String? = nil, mayPrompt: Bool = false, secret: Secret? = nil
    ) async throws(HelperError) -> HelperMessage {
        if let id, !SecretServiceClient.isIdentifier(id) {
            throw .secretService(.failed(reason: "not an identifier of a key"))
        }
        let members: JSONObject = ["do": "secret_service", "verb": verb, "may_prompt": mayPrompt, "key": id]
        let timeout = HelperConnection.timeout + (mayPrompt ? SecretServiceClient.promptTimeout : .zero)
        return try await request(members, secret: secret, timeout: timeout)
    }
}
