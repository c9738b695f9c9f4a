import CErasedHeap
import CLinux
import Glibc
import LocalHTTP

/// The program that carries the traffic of MCP accounts, from bridges (`ringback mcp`) to the servers and back, and that of
/// the addresses that `--relay` gives a command. It gets access tokens from the daemon for each request and keeps none. It
/// ends by itself when nothing has used it for a while, or the daemon or the command has ended.
@main
enum Main {
    static let version = "0.1.0"

    static func main() {
        endFirst()
        _ = clinux_refuse_dumps()
        _ = clinux_forbid_programs()
        umask(0o077)
        signal(SIGPIPE, SIG_IGN)
        let options = Options.read(CommandLine.arguments)
        cleanEnvironment()
        // A hand-out of the daemon is not to wait for the traffic.
        clinux_give_way()
        _ = unsafe chdir("/")
        // The daemon started this for an exposed socket, and says at descriptor 3 which one.
        if options.isExposed {
            guard let server = RestrictedServer(options) else { exit(1) }
            server.run()
            _exit(0)
        }
        if let file = options.orders {
            guard let orders = HTTPRelayOrders(readingFrom: file) else { stop("the orders cannot be read", 1) }
            guard let server = HTTPRelayServer(orders, daemon: options.daemon) else {
                stop("libcurl cannot be loaded", 1)
            }
            confineFiles(changeable: nil)
            sayListening()
            server.run()
            _exit(0)
        }
        // Of several that are started at once, one serves.
        let lock = unsafe open(options.socket + ".lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard lock >= 0 else { stop("cannot open \(options.socket).lock: \(reason(errno))", 1) }
        guard flock(lock, LOCK_EX | LOCK_NB) == 0 else { exit(0) }
        let (listener, file): (Int32, SocketFile?)
        do throws(ServerError) {
            let socket = try ListeningSocket.open(.unix(path: options.socket))
            file = socket.file
            listener = socket.release()
        } catch {
            stop("cannot listen at \(options.socket): \(error)", 1)
        }
        guard let server = RelayServer(listener, file, options) else { stop("libcurl cannot be loaded", 1) }
        // The socket is removed at the end.
        confineFiles(changeable: options.socket.lastIndex(of: "/").map { String(options.socket[..<$0]) })
        sayListening()
        server.run()
        _exit(0)
    }

    /// Where memory runs out, the kernel ends this process before the daemon. The file cannot be written once the process
    /// refuses dumps.
    private static func endFirst() {
        let file = unsafe open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { return }
        _ = unsafe write(file, "900", 3)
        close(file)
    }

    /// A server that takes over the relay finds no file of the user's. Where the system's libraries, certificates and name
    /// servers are stays readable; the daemon passes other certificates. Without Landlock nothing changes. libcurl, which may be
    /// anywhere, is loaded before.
    static func confineFiles(changeable: String?) {
        var readable = [
            "/usr", "/bin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix/store", "/gnu/store",
            "/run/current-system",
            "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", "/var/lib/ca-certificates", "/dev/null",
            "/dev/zero", "/dev/random", "/dev/urandom", "/proc",
        ]
        if let file = unsafe realpath("/etc/resolv.conf", nil) {
            let path = unsafe String(cString: file)
            unsafe free(file)
            // The file is replaced when the network changes.
            let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? ""
            readable.append(folder.isEmpty ? path : folder)
        }
        _ = unsafe clinux_confine_files(readable.joined(separator: ":"), changeable)
    }

    /// No library is to be led elsewhere by what the client that started the bridge has in its environment.
    private static func cleanEnvironment() {
        let name = "RINGBACK_SERVER_UID"
        let owner = unsafe getenv(name).map { unsafe String(cString: $0) }
        clearenv()
        if let owner { unsafe setenv(name, owner, 1) }
    }

    private static func reason(_ number: Int32) -> String { unsafe String(cString: strerror(number)) }

    static func stop(_ reason: String, _ status: Int32) -> Never {
        say("ringback-relay: \(reason)", STDERR_FILENO)
        exit(status)
    }

    /// Who started it waits for this line.
    private static func sayListening() { say("listening", STDOUT_FILENO) }

    private static func say(_ line: String, _ descriptor: Int32) {
        let bytes = Array((line + "\n").utf8)
        _ = unsafe write(descriptor, bytes, bytes.count)
    }
}

struct Options {
    var socket = ""
    /// The daemon's socket.
    var daemon = ""
    /// How long it stays without a connection.
    var idle = Duration.seconds(60)
    var isExposed = false
    /// A descriptor with ``HTTPRelayOrders``.
    var orders: Int32?

    static let usage = """
        Usage: ringback-relay --socket PATH --daemon PATH [--idle SECONDS]

        Carries the traffic of MCP accounts. `ringback mcp` starts it when it is needed.

          --socket PATH     where it listens
          --daemon PATH     the daemon's socket
          --idle SECONDS    how long it stays without a connection (60)
          --exposed         for an exposed socket: ringbackd starts it so
          --http N          for the addresses that --relay gives a command
          --version         print the version
          --help            print this text
        """

    static func read(_ arguments: [String]) -> Options {
        var options = Options()
        var rest = arguments.dropFirst()
        while let word = rest.popFirst() {
            switch word {
            case "--help":
                print(usage)
                exit(0)
            case "--version":
                print("ringback-relay \(Main.version) (\(unsafe String(cString: clinux_commit())))")
                exit(0)
            case "--exposed": options.isExposed = true
            case "--socket", "--daemon", "--idle", "--http":
                guard let value = rest.popFirst(), !value.isEmpty else { Main.stop("\(word) needs a value", 64) }
                switch word {
                case "--socket": options.socket = value
                case "--daemon": options.daemon = value
                case "--http": options.orders = Int32(value)
                default:
                    guard let seconds = Int(value), (1...86_400).contains(seconds) else {
                        Main.stop("--idle is a number of seconds, from 1 to 86400", 64)
                    }
                    options.idle = .seconds(seconds)
                }
            default: Main.stop("unknown argument \(word); see --help", 64)
            }
        }
        guard options.isExposed || options.orders != nil || options.socket.hasPrefix("/"), options.daemon.hasPrefix("/")
        else {
            Main.stop("--socket and --daemon are needed, as absolute paths", 64)
        }
        return options
    }
}
