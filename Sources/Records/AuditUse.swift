internal import Synchronization

/// A use of the socket API that the audit log counts: equal uses of one program are one line with a count.
public struct AuditUse: Hashable, Sendable {
    /// What kind of line it makes.
    public enum Kind: String, Sendable {
        /// A token was handed out.
        case issuedToken = "hand_out"
        /// A request that changes something, or any request of another user (root).
        case request
    }

    public var kind: Kind
    public var account: String?
    /// As policy names it (`token`, `id_token`, `manage` …).
    public var operation: String
    /// What the token was narrowed to; nil for the session's own.
    public var scope: String?
    public var audience: String?
    public var resource: String?
    /// The restricted socket that it was taken through; nil for the daemon's own.
    public var exposedSocket: String?
    /// Method and path of the route, for a request; its parameters stay in braces.
    public var route: String?

    public init(_ kind: Kind, account: String?, operation: String) {
        self.kind = kind
        self.account = account
        self.operation = operation
    }

    /// The same without what a caller may choose freely.
    var withoutDetails: AuditUse {
        var use = self
        (use.scope, use.audience, use.resource) = (nil, nil, nil)
        return use
    }
}

/// The kernel's proof of the process at a socket's other end.
public struct ProcessProof: Sendable {
    /// Different for each process since the boot; nil where the kernel does not say.
    let identity: UInt64?
    /// False once the process has ended and its number may be another one's.
    let isAlive: @Sendable () -> Bool

    public init(identity: UInt64?, isAlive: @escaping @Sendable () -> Bool) {
        self.identity = identity
        self.isAlive = isAlive
    }
}

/// A program at the socket's other end, as one of its connections showed it.
///
/// The kernel's word is `uid` and `pid`. ``isVerified`` says whether the executable is certainly that process's; the
/// rest is what `/proc` said shortly after.
public final class AuditCaller: Sendable {
    public let uid: UInt32
    public let pid: Int32
    /// Read at the first contact: a short-lived program is gone a moment later.
    public let executable: String?
    /// The process that connected ran ``executable`` when that was read: its number was not another process's by then.
    public let isVerified: Bool
    /// Of ``ProcessProof``.
    let processIdentity: UInt64?
    /// Orders callers, and tells them apart.
    let serial: UInt64
    private let resolved = Mutex<CallerIdentity?>(nil)

    init(
        uid: UInt32, pid: Int32, executable: String?, isVerified: Bool = false, identity: UInt64? = nil, serial: UInt64
    ) {
        self.uid = uid
        self.pid = pid
        self.executable = executable
        self.isVerified = isVerified
        processIdentity = identity
        self.serial = serial
    }

    /// Stands for all processes of a uid that are counted together.
    convenience init(unknownOf uid: UInt32) { self.init(uid: uid, pid: -1, executable: nil, serial: 0) }

    /// Who this is. `/proc` is asked the first time, and never again: by then the number may be another process's.
    var identity: CallerIdentity {
        if let known = resolved.withLock({ $0 }) { return known }
        let found = CallerIdentity(of: self)
        resolved.withLock { $0 = found }
        return found
    }
}

/// What a line says of a caller.
struct CallerIdentity: Sendable {
    /// A process, and the program that it ran then: after `exec` it is another one to whoever reads the log.
    struct Program: Hashable, Sendable {
        let uid: UInt32
        let pid: Int32
        let executable: String?
        let isVerified: Bool
        /// Nil for a process that was gone when it was looked at; then `serial` tells it from others.
        let startTime: UInt64?
        let serial: UInt64
    }
    let program: Program
    let unit: String?

    init(of caller: AuditCaller) {
        let startTime = ProcessFacts.startTime(of: caller.pid)
        program = Program(
            uid: caller.uid, pid: caller.pid, executable: caller.executable, isVerified: caller.isVerified,
            startTime: startTime,
            serial: startTime == nil ? caller.serial : 0)
        unit = ProcessFacts.unit(of: caller.pid)
    }
}

/// How often something was done, and when (Unix seconds).
struct Tally: Sendable, Equatable {
    var count = 0
    var first: Int
    var last: Int

    mutating func add(at now: Int) {
        if count == 0 { first = now }
        count += 1
        last = now
    }

    mutating func add(_ other: Tally) {
        count += other.count
        first = min(first, other.first)
        last = max(last, other.last)
    }
}
