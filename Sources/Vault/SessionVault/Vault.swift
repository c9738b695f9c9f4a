public import RingbackBase

/// Stores sessions. A vault keeps one secret text for each slot and does not interpret it. When a changing method of a
/// durable vault returns, a crash does not undo the change. When it throws, the previous content is kept. The caller
/// must serialize `open`, `close` and `rekey`.
public protocol Vault: Sendable {
    /// Makes the texts readable with the key of the source; if there is neither a key nor any sealed file, chooses a
    /// source and makes a key. Does nothing if the vault is open. `passphrase` is for a source that needs one. Throws
    /// `locked` if the source does not give the right key, and `wrongPassphrase`.
    func open(passphrase: Secret?) async throws(VaultError)
    /// Forgets the key. Until the vault is opened again, every method but `open` and `status` throws `locked`.
    func close() async throws(VaultError)
    /// Moves the key to another source. The sealed texts do not change. Throws `refused` if that is not possible.
    func rekey(to choice: KeySourceChoice, passphrase: Secret?) async throws(VaultError)
    /// Nil if the slot is empty. Throws `damaged` or `newer` if its file cannot be read.
    func load(_ slot: VaultSlot) async throws(VaultError) -> VaultEntry?
    /// In the order of the slots.
    func load(_ slots: [VaultSlot]) async -> [Result<VaultEntry?, VaultError>]
    /// Announces a change that a request to a provider may cause (the refresh token may be rotated), and reserves disk
    /// space for it. Until the next `store`, `replace`, `settle`, `retire` or `remove`, `load` reports it, also after a
    /// crash. Throws `unwritable` if there is no space.
    func announce(_ slot: VaultSlot) async throws(VaultError)
    /// Where several hosts may share the vault: whether the request may be sent now. `token` is the refresh token that
    /// will be presented; nil if it is not one of the slot's. `accessTokenLeft` is nil if it is not known.
    func announce(
        _ slot: VaultSlot, presenting token: Secret?, accessTokenLeft: Duration?
    ) async throws(VaultError) -> Announcement
    /// Called right before each request of an announced change: how long it may take at most; nil for no bound. Throws
    /// if it must not be sent any more, because the lease is over or the vault has another one by now.
    func requestBound(_ slot: VaultSlot, under lease: RefreshLease) async throws(VaultError) -> Duration?
    /// The provider has refused every refresh token of an announced change. Nil if another host may have received a
    /// newer one: then the session may live.
    func proofOfEnd(_ slot: VaultSlot) async -> EndProof?
    /// The slots whose content another host has changed; nil for any of them.
    var changes: AsyncStream<VaultSlot?> { get }
    /// Replaces the slot's content. Throws `unwritable`, and `refused` for a text of more than 1 MiB.
    func store(_ text: Secret, in slot: VaultSlot) async throws(VaultError)
    /// `write` decides what is done if another host has changed the slot.
    func store(_ text: Secret, in slot: VaultSlot, as write: VaultWrite) async throws(VaultError)
    /// Ends an announcement without a change.
    func settle(_ slot: VaultSlot) async throws(VaultError)
    /// Empties the slot. An empty slot is no error.
    func remove(_ slot: VaultSlot) async throws(VaultError)
    /// Moves the slot's content out of the slot in one step and keeps it until it is discarded: a session that has
    /// ended here, but is not revoked at the provider yet. Nil if the slot is empty.
    func retire(_ slot: VaultSlot) async throws(VaultError) -> RetiredEntry?
    /// Stores a new text and retires the old one: after a crash either both or neither. Nil if the slot was empty.
    func replace(_ text: Secret, in slot: VaultSlot) async throws(VaultError) -> RetiredEntry?
    /// Keeps a text as if it had been retired from the slot. Throws `unwritable`, and `refused` for more than 1 MiB.
    func keep(_ text: Secret, retiredFrom slot: VaultSlot) async throws(VaultError) -> RetiredEntry
    /// True once after the vault has kept a text by itself, which another host received, or this one after a sign-out
    /// on another.
    func keptMore() async -> Bool
    /// All that were not discarded, oldest first. Unreadable ones are left out.
    func retired() async throws(VaultError) -> [RetiredEntry]
    /// Those that hold something, except the known ones. Files that cannot be read are left out.
    func slots(of kind: VaultSlot.Kind, besides known: Set<VaultSlot>) async throws(VaultError) -> [VaultSlot]
    /// An unknown identifier is no error.
    func discard(_ id: String) async throws(VaultError)
    /// Of `GET /v1/status`.
    var status: VaultStatus { get }
}

/// Under what a request may be sent that may change the slot's content.
public enum RefreshLease: Sendable, Hashable {
    /// One host uses the slot alone.
    case unshared
    /// The request needs no lease: no host has stored anything there, or the provider keeps its refresh tokens.
    case unleased
    /// The identifier of this host's lease.
    case lease([UInt8])
}

/// What the vault says of a request that may change the slot's content.
public enum Announcement: Sendable, Equatable {
    /// The texts are what other hosts received and what is not in the slot, the newest first: `newer` came after the
    /// slot's own text, so its refresh tokens are presented first.
    case granted(RefreshLease, newer: [Secret] = [], older: [Secret] = [])
    /// Another host has changed the slot. This is its content now; nil if it is empty.
    case changed(VaultEntry?)
    /// Another host is sending such a request, or may have sent one. To be announced again when ``Vault/changes`` names
    /// the slot, at the latest after this time.
    case wait(Duration)
}

/// What is written to a slot.
public enum VaultWrite: Sendable, Equatable {
    /// A response to an announced request that is not validated yet: another write follows.
    case received
    /// The result of an announced request.
    case result
    /// The provider has ended the session.
    case end
    /// A change without a request to the provider.
    case edit
    /// What the user did on this host, such as a sign-in: it replaces whatever other hosts have written.
    case replacement
}

/// A vault that one host uses alone grants every request.
extension Vault {
    public func announce(
        _ slot: VaultSlot, presenting token: Secret?, accessTokenLeft: Duration?
    ) async throws(VaultError) -> Announcement {
        try await announce(slot)
        return .granted(.unshared)
    }

    public func requestBound(_ slot: VaultSlot, under lease: RefreshLease) async throws(VaultError) -> Duration? { nil }
    public func proofOfEnd(_ slot: VaultSlot) async -> EndProof? { EndProof() }
    public var changes: AsyncStream<VaultSlot?> { AsyncStream { $0.finish() } }
    public func keptMore() async -> Bool { false }

    public func store(_ text: Secret, in slot: VaultSlot, as write: VaultWrite) async throws(VaultError) {
        try await store(text, in: slot)
    }

    public func load(_ slots: [VaultSlot]) async -> [Result<VaultEntry?, VaultError>] {
        var found: [Result<VaultEntry?, VaultError>] = []
        for slot in slots {
            do throws(VaultError) {
                found.append(.success(try await load(slot)))
            } catch {
                found.append(.failure(error))
            }
        }
        return found
    }
}

/// An account's place in the vault for one binding. If the account's provider or client is changed in the
/// configuration, it uses another slot, and the old one again if that is changed back.
public struct VaultSlot: Hashable, Sendable {
    /// The raw values are those of sealed files.
    public enum Kind: UInt8, Sendable, CaseIterable {
        case session = 0x53
        /// Of a dynamic client registration. It is never retired.
        case registration = 0x52
        /// The known users who have signed in. Collected again if the vault's key is lost.
        case people = 0x50
        /// What was learned of a provider, whichever account uses it. Learned again if the vault's key is lost.
        case provider = 0x4F
        /// The data key of a vault that hosts share.
        case hostsKey = 0x48
    }

    public let account: String
    /// What the session is bound to, such as provider and client.
    public let binding: String
    public let kind: Kind

    public init(account: String, binding: String, kind: Kind = .session) {
        self.account = account
        self.binding = binding
        self.kind = kind
    }
}

/// What explains that a provider refuses every refresh token of a session.
public struct EndProof: Sendable, Equatable {
    /// A request whose response no host has. The provider may have answered it with a new refresh token.
    public struct UnheardRequest: Sendable, Equatable {
        public let host: String
        public let age: Duration

        public init(host: String, age: Duration) {
            self.host = host
            self.age = age
        }
    }

    /// The last such request.
    public let unheard: UnheardRequest?

    public init(unheard: UnheardRequest? = nil) { self.unheard = unheard }
}

public struct VaultEntry: Sendable, Equatable {
    public let text: Secret
    /// A change was announced and its result is unknown, because the daemon ended before it was stored.
    public let isInterrupted: Bool
    /// To be added to the times since boot in the text, where it may be of another machine or boot. Nil if it is not
    /// known.
    public let shift: Duration?

    public init(text: Secret, isInterrupted: Bool = false, shift: Duration? = nil) {
        self.text = text
        self.isInterrupted = isInterrupted
        self.shift = shift
    }
}

/// A text that was moved out of its slot.
public struct RetiredEntry: Sendable, Equatable {
    /// Unique in the vault.
    public let id: String
    public let slot: VaultSlot
    public let text: Secret

    public init(id: String, slot: VaultSlot, text: Secret) {
        self.id = id
        self.slot = slot
        self.text = text
    }
}

/// Why a vault operation failed.
public enum VaultError: Error, Sendable, Equatable {
    /// The key is not available: its source is absent or locked, or holds another key.
    case locked(VaultReason, obstacle: VaultObstacle? = nil)
    case wrongPassphrase
    case unwritable(VaultReason)
    /// The slot's file cannot be read and was renamed.
    case damaged(VaultReason)
    /// The file was written by a newer version and was not changed.
    case newer(VaultReason)
    /// The hosts' database, or the row of the slot in it, cannot be used now. What is in memory still can.
    case unreachable(VaultReason)
    /// The operation is not possible for this vault, or not now.
    case refused(VaultReason, obstacle: VaultObstacle? = nil)
}

extension VaultError {
    /// Why, and what the user can change about it; nil for a wrong passphrase.
    package var cause: (reason: VaultReason, obstacle: VaultObstacle?)? {
        switch self {
        case .locked(let reason, let obstacle), .refused(let reason, let obstacle): (reason, obstacle)
        case .unwritable(let reason), .damaged(let reason), .newer(let reason), .unreachable(let reason): (reason, nil)
        case .wrongPassphrase: nil
        }
    }

    package var sentence: String { cause?.reason.sentence ?? "The passphrase does not open the vault." }
}

/// A condition that the user can change so that the vault opens.
public enum VaultObstacle: Sendable, Equatable {
    /// The key is kept by another source than the configured one.
    case keySourceDiffers(recorded: KeySourceChoice, configured: KeySourceChoice)
    /// The directory of the key file.
    case openToOthers(path: String)
    /// The database's role belongs to no host that has joined.
    case notJoined
    /// Another host must give the hosts' key to this one.
    case noHostsKey
}

public struct VaultStatus: Sendable, Equatable {
    /// Where sessions are kept. The raw values are those of the API.
    public enum Kind: String, Sendable, CaseIterable {
        case sealedFile = "sealed-file"
        /// They are lost when the daemon ends.
        case memory
    }

    public var kind: Kind
    public var isLocked: Bool
    /// Nil if it is not locked.
    public var reason: VaultReason?
    public var obstacle: VaultObstacle?
    /// Where the key is kept; nil before the first opening, if the configuration leaves it open.
    public var keySource: KeySourceChoice?
    public var protection: VaultProtection
    /// The vault is locked because no passphrase was chosen yet. The next one that is given becomes the vault's.
    public var needsNewPassphrase = false
    /// The database that hosts share; nil for a vault of one host.
    public var database: VaultDatabase?
    /// The configured source, if it is neither `auto` nor the key's: the vault will be locked after the next start.
    public var otherKeySource: KeySourceChoice?
}

/// Keeps sessions in memory only, until the process ends.
public actor MemoryVault: Vault {
    private var texts: [VaultSlot: Secret] = [:]
    private var announced: Set<VaultSlot> = []
    private var leaving: [RetiredEntry] = []
    private var number = 0

    public init() {}
    public func open(passphrase: Secret?) {}
    public func close() throws(VaultError) { throw .refused(.inMemory) }

    public func rekey(to choice: KeySourceChoice, passphrase: Secret?) throws(VaultError) {
        throw .refused(.noKeyInMemory)
    }

    public func load(_ slot: VaultSlot) -> VaultEntry? {
        texts[slot].map { VaultEntry(text: $0, isInterrupted: announced.contains(slot)) }
    }

    public func announce(_ slot: VaultSlot) { announced.insert(slot) }

    public func store(_ text: Secret, in slot: VaultSlot) {
        texts[slot] = text
        announced.remove(slot)
    }

    public func settle(_ slot: VaultSlot) { announced.remove(slot) }

    public func remove(_ slot: VaultSlot) {
        texts[slot] = nil
        announced.remove(slot)
    }

    public func retire(_ slot: VaultSlot) -> RetiredEntry? {
        guard let text = texts.removeValue(forKey: slot) else { return nil }
        announced.remove(slot)
        return keep(text, retiredFrom: slot)
    }

    public func replace(_ text: Secret, in slot: VaultSlot) -> RetiredEntry? {
        let entry = retire(slot)
        store(text, in: slot)
        return entry
    }

    public func keep(_ text: Secret, retiredFrom slot: VaultSlot) -> RetiredEntry {
        number += 1
        let entry = RetiredEntry(id: "\(number)", slot: slot, text: text)
        leaving.append(entry)
        return entry
    }

    public func retired() -> [RetiredEntry] { leaving }

    public func slots(of kind: VaultSlot.Kind, besides known: Set<VaultSlot>) -> [VaultSlot] {
        texts.keys.filter { $0.kind == kind && !known.contains($0) }
    }

    public func discard(_ id: String) { leaving.removeAll { $0.id == id } }

    public nonisolated var status: VaultStatus {
        VaultStatus(kind: .memory, isLocked: false, keySource: .memory, protection: .memory(reason: nil))
    }
}
