public import ArgumentParser
import Glibc
import LocalHTTP
import Logging
import RingbackBase
import Sandbox
import ServiceLifecycle
import UnixSignals

/// The development identity provider as a program. Standard output is for the program that starts it: one line that
/// says where it listens. Everything for people goes to standard error.
@main struct RingbackSandbox: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ringback-sandbox",
        abstract: "A development identity provider to work against offline.",
        discussion: """
            Signs in named users without passwords, by OpenID Connect with PKCE. Listens on loopback only. The first \
            line on standard output is "listening on http://HOST:PORT"; the server's root page shows the rest.
            """)

    @Option(help: "The port; 0 for a free one.") var port = 0
    @Option(help: "The loopback address: 127.0.0.1 or ::1.") var host = "127.0.0.1"
    @Option(name: .customLong("user"), help: "A user who can sign in; may be repeated. (default: alice, bob, carol)")
    var userNames: [String] = []
    @Option(
        defaultAsFlag: "",
        help: ArgumentHelp("Sign this user in without asking; the first one if none is named.", valueName: "name"))
    var autoApprove: String? = nil
    @Option(help: ArgumentHelp("How long access tokens are valid.", valueName: "seconds")) var accessTokenLifetime =
        3_600
    @Flag(help: "Refreshes keep the refresh token.") var noRotation = false
    @Option(help: "The algorithm with which ID tokens are signed.") var algorithm = SandboxAlgorithm.rs256
    @Option(help: ArgumentHelp("How long every request waits before it is handled.", valueName: "ms")) var latency = 0
    @Option(
        name: .customLong("client"),
        help: ArgumentHelp(
            "Another client beside ringback-demo, with a secret or public; may be repeated.", valueName: "id[:secret]"))
    var clients: [String] = []
    @Option(
        name: .customLong("redirect-uri"),
        help: ArgumentHelp(
            "A redirect URI that every client may use besides http on loopback; may be repeated.", valueName: "uri"))
    var redirectURIs: [String] = []
    @Option(
        help: ArgumentHelp(
            "Where the issuers' URLs begin, if a server in front of this one passes requests on.", valueName: "url"))
    var publicOrigin: String? = nil

    func validate() throws {
        guard (0...65_535).contains(port) else { throw ValidationError("--port is 0 to 65535.") }
        guard ["127.0.0.1", "::1"].contains(host) else {
            throw ValidationError("--host is 127.0.0.1 or ::1: the sandbox has no passwords and no secrets.")
        }
        for name in userNames where !SandboxUser.isName(name) {
            throw ValidationError("--user \(name): a name is [a-z0-9][a-z0-9._-]{0,63}.")
        }
        if let autoApprove, !autoApprove.isEmpty, !users.contains(where: { $0.name == autoApprove }) {
            let names = users.map(\.name).joined(separator: ", ")
            throw ValidationError("--auto-approve \(autoApprove): the users are \(names).")
        }
        guard accessTokenLifetime >= 0, accessTokenLifetime <= 1 << 40, latency >= 0, latency <= 1 << 40 else {
            throw ValidationError("Durations are not negative.")
        }
        if let publicOrigin {
            let parts = publicOrigin.split(separator: "/", omittingEmptySubsequences: false)
            guard parts.count == 3, ["http:", "https:"].contains(parts[0]), parts[1].isEmpty, !parts[2].isEmpty else {
                throw ValidationError("--public-origin \(publicOrigin): write https://HOST or https://HOST:PORT.")
            }
        }
        for client in clients where client.isEmpty || client.hasPrefix(":") || client.hasSuffix(":") {
            throw ValidationError("--client \(client): write ID or ID:SECRET.")
        }
    }

    private var users: [SandboxUser] {
        userNames.isEmpty ? SandboxOptions().users : userNames.map(SandboxUser.init(name:))
    }

    private var options: SandboxOptions {
        var settings = SandboxSettings()
        settings.accessTokenLifetime = accessTokenLifetime
        settings.rotates = !noRotation
        settings.algorithm = algorithm
        settings.autoApprovedUser = autoApprove.flatMap { $0.isEmpty ? users.first?.name : $0 }
        if latency > 0 { settings.setLatency(latency) }
        let registered = clients.map { text in
            let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
            return SandboxClient(id: parts[0], secret: parts.count == 2 ? Secret(parts[1]) : nil)
        }
        var every = registered.contains { $0.id == SandboxClient.demo.id } ? [] : [SandboxClient.demo]
        every += registered
        for index in every.indices { every[index].redirectURIs = redirectURIs }
        var options = SandboxOptions(users: users, clients: every, settings: settings)
        options.announce = { RingbackSandbox.write($0 + "\n", to: STDERR_FILENO) }
        return options
    }

    func run() async throws {
        let options = options
        let site = SandboxSite(options: options)
        let server = HTTPServer { await site.respond(to: $0) }
        let port = try listen(server)
        let origin = "http://\(host == "::1" ? "[::1]" : host):\(port)"
        site.open(at: origin, publicOrigin: publicOrigin)
        // A reader that has closed standard output must not end the server.
        signal(SIGPIPE, SIG_IGN)
        Self.write("listening on \(origin)\n", to: STDOUT_FILENO)
        let first = site.issuers.first ?? origin
        Self.write(
            """
            issuers  \(site.issuers.joined(separator: ", "))
            users    \(options.users.map(\.name).joined(separator: ", "))
            clients  \(options.clients.map(\.id).joined(separator: ", "))
            switches POST \(origin)/sandbox/control
            project  \(first)/supabase with the key sb_publishable_sandbox
            inbox    \(first)/supabase/sandbox/inbox
            next     ringback account add play --issuer \(first) --client-id \(options.clients[0].id)
                     ringback account add app --provider supabase --url \(first)/supabase \\
                         --api-key sb_publishable_sandbox

            """, to: STDERR_FILENO)
        // Cancelled instead of shut down gracefully: requests that a test has left open are not needed.
        var configuration = ServiceGroupConfiguration(
            services: [.init(service: server, successTerminationBehavior: .cancelGroup)],
            cancellationSignals: [.sigterm, .sigint], logger: Logger(label: "sandbox") { _ in SwiftLogNoOpLogHandler() }
        )
        configuration.maximumCancellationDuration = .seconds(3)
        do {
            try await ServiceGroup(configuration: configuration).run()
        } catch is CancellationError {
            return
        }
    }

    private func listen(_ server: HTTPServer) throws -> Int {
        do {
            return try server.listen(at: .loopback(host: host, port: port))
        } catch {
            guard case .portInUse(let port) = error else { throw error }
            Self.write("Error: port \(port) is taken. --port 0 takes a free one.\n", to: STDERR_FILENO)
            throw ExitCode.failure
        }
    }

    /// Writes the whole text at once: the program that started this one waits for the line.
    private static func write(_ text: String, to descriptor: Int32) {
        _ = Descriptor.write(Array(text.utf8), to: descriptor)
    }
}

extension SandboxAlgorithm: ExpressibleByArgument {}
