internal import Synchronization

/// A use of the socket API that the audit log counts. Equal uses of one program become one line with a count.
public struct AuditUse: Hashable, Sendable {
    /// The kind of the line.
    public enum Kind: String, Sendable {
        /// A token was issued.
        case issuedToken = "issued_token"
        /// A request that changes something, or any request of another user (root).
        case request
    }

    public var kind: Kind
    public var account: String?
    /// The operation's name in the policy (`token`, `id_token`, `manage` …).
    public var operation: String
    /// The scope of a downscoped token; nil for the session's own.
    public var scope: String?
    public var audience: String?
    public var resource: String?
    /// The URL pattern of the origin for which a tool looked the token up; nil for other uses.
    public var origin: String?
    /// The name that the tool gave itself. It is not verified.
    public var tool: String?
    /// The restricted socket that was used; nil for the daemon's own.
    public var exposedSocket: String?
    /// For a request: method and path of the route, with parameters in braces.
    public var route: String?

    public init(_ kind: Kind, account: String?, operation: String) {
        self.kind = kind
        self.account = account
        self.operation = operation
    }

    /// The use without the values that a caller chooses freely.
    var withoutDetails: AuditUse {
        var use = self
        (use.scope, use.audience, use.resource, use.tool) = (nil, nil, nil, nil)
        return use
    }
}

/// The kernel's proof of which process is connected to a socket.
public struct ProcessProof: Sendable {
    /// Unique for each process since boot; nil if the kernel does not report it.
    let identity: UInt64?
    /// False once the process has ended, because its pid may then be another process's.
    let isAlive: @Sendable () -> Bool

    public init(identity: UInt64?, isAlive: @escaping @Sendable () -> Bool) {
        self.identity = identity
        self.isAlive = isAlive
    }
}

/// A program that connected to the socket.
///
/// Only `uid` and `pid` come from the kernel with the connection. ``isVerified`` says whether the executable is
/// certainly that process's. The rest was read from `/proc` shortly after.
public final class AuditCaller: Sendable {
    public let uid: UInt32
    public let pid: Int32
    /// Read at the first contact, because a short-lived program may end a moment later.
    let link: ExecutableLink
    public let executable: String?
    /// True if the process that connected was alive after ``executable`` was read, so that the pid was not another process's,
    /// and if that path is the same file for the daemon. It is the program that the process ran at that moment; the one that
    /// sent the request may have been another, if the process has called `exec` since.
    public let isVerified: Bool
    /// See ``ProcessProof``.
    let processIdentity: UInt64?
    /// Distinguishes callers and orders them.
    let serial: UInt64
    /// When it was seen first, in ``ProcessFacts/ticksSinceBoot``.
    let seen: UInt64
    private let resolved = Mutex<CallerIdentity?>(nil)

    /// - Parameter proof: nil if the kernel gives none.
    init(
        uid: UInt32, pid: Int32, proof: ProcessProof? = nil, seen: UInt64 = ProcessFacts.ticksSinceBoot, serial: UInt64
    ) {
        self.uid = uid
        self.pid = pid
        self.seen = seen
        link = ExecutableLink(of: pid)
        executable = link.text
        // In this order: the process must be alive after the executable was read.
        isVerified = executable != nil && link.isFoundHere && proof?.isAlive() == true
        processIdentity = proof?.identity
        self.serial = serial
    }

    /// Stands for all processes of a uid that are counted together.
    convenience init(unknownOf uid: UInt32) { self.init(uid: uid, pid: -1, serial: 0) }

    /// Its systemd unit when it was looked up first; nil if it has none, or had ended.
    public var unit: String? { identity.unit }

    /// The caller's identity. `/proc` is read only once, because the process id may later belong to another process.
    var identity: CallerIdentity {
        if let known = resolved.withLock({ $0 }) { return known }
        let found = CallerIdentity(of: self)
        resolved.withLock { $0 = found }
        return found
    }
}

/// What a line says about a caller.
struct CallerIdentity: Sendable {
    /// A process and the program that it ran. After `exec` it counts as another program.
    struct Program: Hashable, Sendable {
        let uid: UInt32
        let pid: Int32
        let executable: String?
        let isVerified: Bool
        /// Nil if the process had ended when it was looked up; then `serial` distinguishes it.
        let startTime: UInt64?
        let serial: UInt64
    }
    let program: Program
    let unit: String?

    /// Race: the process may have ended meanwhile, and its id may be a later process's. That one started after the caller
    /// was seen, so neither its start time nor its unit is taken over.
    init(of caller: AuditCaller) {
        func start() -> UInt64? { ProcessFacts.startTime(of: caller.pid).flatMap { $0 <= caller.seen ? $0 : nil } }
        let startTime = start()
        // The start time is read before and after: the unit is that of the process in between.
        let unit = startTime == nil ? nil : ProcessFacts.unit(of: caller.pid)
        program = Program(
            uid: caller.uid, pid: caller.pid, executable: caller.executable, isVerified: caller.isVerified,
            startTime: startTime,
            serial: startTime == nil ? caller.serial : 0)
        self.unit = start() == startTime ? unit : nil
    }
}

/// How often something was done, and the first and last time in Unix seconds.
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
