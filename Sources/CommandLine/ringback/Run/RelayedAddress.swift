import CLinux
import Confinement
import Glibc
import RingbackBase
import RingbackClient
import Terminal

/// `--relay VAR=URL`: an address on loopback that a variable names. Requests to it get the credentials for the URL on their
/// way to it, which the command never sees.
struct RelayedAddress {
    /// As many as a listener can be passed for out of a namespace, beside two other descriptors.
    static let most = 6

    let variable: String
    let url: WebURL

    /// Throws `validation_failed`.
    init(_ text: String) throws(RingbackError) {
        let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
        guard parts.count == 2, parts[0].isVariableName else {
            throw RingbackError(
                .validationFailed, "--relay is VARIABLE=URL, such as OPENAI_BASE_URL=https://api.example.org/v1.")
        }
        // The origin of a table is compared with each request, so only its form matters here.
        guard let url = try? WebURL(parsing: parts[1]), (try? OriginPattern(parsing: parts[1])) != nil,
            ["https", "http"].contains(url.scheme), !parts[1].hasSuffix("*")
        else {
            throw RingbackError(
                .validationFailed,
                "\(parts[1]) cannot be relayed: it must be an https URL (http on this machine) without a query.")
        }
        (variable, self.url) = (parts[0], url)
    }

    /// All of them. Throws `validation_failed`.
    static func all(_ texts: [String]) throws(RingbackError) -> [RelayedAddress] {
        guard texts.count <= most else {
            throw RingbackError(.validationFailed, "There can be \(most) addresses by --relay.")
        }
        return try texts.map { text throws(RingbackError) in try RelayedAddress(text) }
    }

    /// What the variable has.
    func address(at port: UInt16) -> String { "http://127.0.0.1:\(port)\(url.path)" }

    /// Checks that the daemon has credentials for the URL, so that what is missing is said before anything runs. Returns the
    /// account whose they are. The user is asked for consent when the command, which nobody has started yet, sends a request.
    ///
    /// - Parameter account: the only one whose token is wanted; nil for that of the origin.
    func check(_ calls: BrokerCalls, account: String? = nil, signsIn: Bool = false) throws(RingbackError) -> String {
        var request = OriginRequest(url: url.text)
        request.isInteractive = signsIn
        request.isWithoutToken = true
        let found: String
        do throws(RingbackError) { found = try calls.lookup(request).account } catch {
            guard error.kind == .notFound else { throw error }
            var missing = RingbackError(.notFound, "No origin of the configuration fits \(url.text).")
            missing.advice = "Run: \(shown: "ringback origin add \(url.text) --account \(account ?? "NAME")")"
            throw missing
        }
        guard account == nil || account == found else {
            throw RingbackError(
                .stateConflict, "The origin of \(url.text) has the account \(found), not \(account ?? "").")
        }
        return found
    }
}

/// The `ringback-relay` of a command. It ends when the process that starts it ends, or what that becomes.
struct RelayProcess {
    struct Listener {
        let address: RelayedAddress
        /// The only one whose token is sent.
        let account: String
        let descriptor: Int32
        let port: UInt16
        /// Other users of the machine can reach it.
        let isShared: Bool
    }

    private let output: Pipe

    /// - Parameters:
    ///   - application: for the audit log.
    ///   - client: the command's process.
    init(
        _ listeners: [Listener], _ calls: BrokerCalls, application: String, client: Int32 = getpid()
    ) throws(RingbackError) {
        output = try Pipe()
        let own = clinux_open_process(getpid())
        let relays = listeners.map { listener -> JSON in
            .object([
                "listener": Int(listener.descriptor), "port": Int(listener.port), "url": listener.address.url.text,
                "account": listener.account, "shared": listener.isShared,
            ])
        }
        let orders = JSON.object([
            "process": Int(own), "client": Int(client), "application": application, "relays": relays,
        ]).serialized()
        let file = unsafe clinux_memory_file(orders, orders.count)
        guard own >= 0, file >= 0 else { throw RingbackError(.systemError, "No file in memory can be made.") }
        defer { for descriptor in [own, file] + listeners.map(\.descriptor) { close(descriptor) } }
        guard let program = SearchPath.own.place(of: Programs.path("ringback-relay")),
            let daemon = Path.absolute(calls.socket)
        else { throw RelayProcess.missing }
        let words = [program, "--http", "\(file)", "--daemon", daemon]
        let variables = ["RINGBACK_SERVER_UID"].compactMap { name in
            SocketPlace.variable(name).map { "\(name)=\($0)" }
        }
        var vector = unsafe words.map { unsafe strdup($0) } + [nil]
        var environment = unsafe variables.map { unsafe strdup($0) } + [nil]
        defer { unsafe (vector + environment).forEach { unsafe free($0) } }
        let kept = [own, file] + listeners.map(\.descriptor)
        let code = unsafe clinux_start_apart(program, &vector, &environment, nil, output.writeEnd, kept, kept.count)
        output.closeWriteEnd()
        guard code == 0 else { throw RelayProcess.missing }
    }

    /// Waits until it serves.
    func wait() throws(RingbackError) {
        guard output.read(until: .now + .seconds(10))?.starts(with: "listening".utf8) == true else {
            throw RelayProcess.missing
        }
    }

    static let missing = Programs.missing("ringback-relay", "relay_missing")
}

/// The addresses of a confined command. Its network namespace is new, so their ports are free, and the same each time: what
/// a program keeps in its settings stays right.
struct ConfinedRelays {
    private static let firstPort: UInt16 = 8_701

    let addresses: [RelayedAddress]
    /// Of each address that was checked.
    private var accounts: [String] = []

    /// Throws `validation_failed`.
    init(_ texts: [String]) throws(RingbackError) { addresses = try RelayedAddress.all(texts) }

    private var ports: [UInt16] { addresses.indices.map { ConfinedRelays.firstPort + UInt16($0) } }

    /// What `--explain` says of them.
    var rows: [[String]] {
        addresses.enumerated().map { index, address in
            let whose = index < accounts.count ? "the credentials of \(accounts[index])" : "its credentials"
            return ["reach", "\(address.url.text) with \(whose), by \(address.variable)"]
        }
    }

    /// As ``RunInside`` reads them.
    var portList: String { ports.map(String.init).joined(separator: ",") }

    func added(to variables: [(name: String, value: String)]) -> [(name: String, value: String)] {
        guard !addresses.isEmpty else { return variables }
        let direct = ProxyExceptions.adding("127.0.0.1") { name in variables.first { $0.name == name }?.value }
        let added = direct + zip(addresses, ports).map { ($0.variable, $0.address(at: $1)) }
        let named = Set(added.map(\.name))
        return variables.filter { !named.contains($0.name) } + added
    }

    mutating func check(_ daemon: DaemonOptions) throws(RingbackError) {
        accounts = []
        for address in addresses { accounts.append(try address.check(try daemon.calls())) }
    }

    /// Starts the relay with the listeners that were made inside; nil if there are none. The addresses must have been checked.
    ///
    /// - Parameter command: a pidfd of the command.
    func start(
        _ descriptors: ArraySlice<Int32>, command: Int32, _ daemon: DaemonOptions
    ) throws(RingbackError) -> RelayProcess? {
        guard !addresses.isEmpty else { return nil }
        let listeners = zip(zip(addresses, accounts), zip(ports, descriptors)).map {
            RelayProcess.Listener(address: $0.0, account: $0.1, descriptor: $1.1, port: $1.0, isShared: false)
        }
        return try RelayProcess(
            listeners, try daemon.calls(), application: "ringback run",
            client: ConfinedRelays.process(of: command) ?? getpid())
    }

    /// The process id here: inside it is another one.
    private static func process(of pidfd: Int32) -> Int32? {
        let text = String(decoding: (try? Files.contents(of: "/proc/self/fdinfo/\(pidfd)")) ?? [], as: UTF8.self)
        let line = text.split(separator: "\n").first { $0.hasPrefix("Pid:") }
        return line?.split(separator: "\t").last.flatMap { Int32($0) }
    }
}
