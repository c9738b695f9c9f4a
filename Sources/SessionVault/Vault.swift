public import Secrets

/// Where sessions rest. A vault keeps one secret text per slot and knows nothing of what it means. When a method that
/// changes something returns, a crash does not undo it, if the vault is a durable one; whatever it throws, what it held
/// before is still held.
///
/// Callers bring an order of their own: `open`, `close` and `rekey` are never called while another of them runs.
public protocol Vault: Sendable {
    /// Makes the texts readable: fetches the key from its source, or chooses a source and makes a key if there is none
    /// yet and nothing is sealed. Opening an open vault does nothing. `passphrase` is for a source that asks for one.
    func open(passphrase: Secret?) async throws(VaultError)
    /// Forgets the key: until it is opened again, every method but `open` and `status` throws `locked`.
    func close() async throws(VaultError)
    /// Moves the key to another source. The sealed texts stay as they are.
    func rekey(to choice: KeySourceChoice, passphrase: Secret?) async throws(VaultError)

    /// What the slot holds, or nil.
    func load(_ slot: VaultSlot) async throws(VaultError) -> VaultEntry?
    /// Says that a change of the slot is coming whose cause lies outside (a provider may be rotating the token), and
    /// makes room for it on the disk. Until the next `store`, `settle`, `retire` or `remove`, `load` tells of it, after
    /// a crash too.
    func announce(_ slot: VaultSlot) async throws(VaultError)
    /// Replaces what the slot holds.
    func store(_ text: Secret, in slot: VaultSlot) async throws(VaultError)
    /// The announced change did not come.
    func settle(_ slot: VaultSlot) async throws(VaultError)
    /// Empties the slot. An empty slot is not an error.
    func remove(_ slot: VaultSlot) async throws(VaultError)

    /// Takes what the slot holds out of it, in one step, and keeps it until it is discarded: a session that is over here
    /// and that the provider has yet to hear of. Nil if the slot is empty.
    func retire(_ slot: VaultSlot) async throws(VaultError) -> RetiredEntry?
    /// Everything that was retired and not discarded, oldest first. What cannot be read is left out.
    func retired() async throws(VaultError) -> [RetiredEntry]
    /// The slots that hold a session, except those that are known. What cannot be read is left out.
    func sessionSlots(besides known: Set<VaultSlot>) async throws(VaultError) -> [VaultSlot]
    /// Lets a retired text go for good. An unknown identifier is not an error.
    func discard(_ id: String) async throws(VaultError)

    /// What `GET /v1/status` tells about this vault.
    var status: VaultStatus { get }
}

/// An account's place in the vault, for one binding: when the account's provider or client changes, its session stays
/// in its own slot, out of reach, and is there again when the configuration is.
public struct VaultSlot: Hashable, Sendable {
    /// What rests in a slot. Slots that differ in nothing else are different ones.
    public enum Kind: Sendable, CaseIterable {
        case session
        /// What the provider gave when it registered the account's client. It is never retired.
        case registration
        /// What was known of the people who signed in. It is never retired, and nobody misses it for long: a vault
        /// whose key is lost asks nobody to bring it back.
        case people
    }

    public let account: String
    /// What the text is bound to, as bytes that differ whenever it does.
    public let binding: String
    public let kind: Kind

    public init(account: String, binding: String, kind: Kind = .session) {
        self.account = account
        self.binding = binding
        self.kind = kind
    }
}

/// What a slot holds.
public struct VaultEntry: Sendable, Equatable {
    public let text: Secret
    /// A change was announced and nobody knows what became of it: the daemon did not live to tell.
    public let isInterrupted: Bool

    public init(text: Secret, isInterrupted: Bool = false) {
        self.text = text
        self.isInterrupted = isInterrupted
    }
}

/// A text that has left its slot.
public struct RetiredEntry: Sendable, Equatable {
    /// Good for ``Vault/discard(_:)``; different for each.
    public let id: String
    public let slot: VaultSlot
    public let text: Secret

    public init(id: String, slot: VaultSlot, text: Secret) {
        self.id = id
        self.slot = slot
        self.text = text
    }
}

/// Why a vault did not do it. Reasons are sentences for people: what, where, what to do.
public enum VaultError: Error, Sendable, Equatable {
    /// It has no key now: its source is absent, locked, or another one than the vault was sealed with.
    case locked(reason: String)
    /// The passphrase does not open it.
    case wrongPassphrase
    case unwritable(reason: String)
    /// The slot's text cannot be read; the file was set aside under a new name.
    case damaged(reason: String)
    /// It was written by a newer version, and was not touched.
    case newer(reason: String)
    /// This vault cannot do that at all, or not now.
    case refused(reason: String)
}

/// What a vault protects against, in its own words.
public struct VaultStatus: Sendable, Equatable {
    /// `sealed-file` or `memory`.
    public var kind: String
    public var isLocked: Bool
    /// Why it is locked; nil when it is not.
    public var reason: String?
    /// A ``KeySourceChoice``'s name; `undecided` before the first opening.
    public var keySource: String
    public var protects: String
    /// It is locked since there is no passphrase yet: the next one that is given becomes its passphrase.
    public var needsNewPassphrase = false
    /// The ``KeySourceChoice`` that the configuration names, where that is neither `auto` nor the key's source: the next
    /// start will be locked.
    public var otherKeySource: String?

    public init(kind: String, isLocked: Bool, reason: String? = nil, keySource: String, protects: String) {
        self.kind = kind
        self.isLocked = isLocked
        self.reason = reason
        self.keySource = keySource
        self.protects = protects
    }
}
