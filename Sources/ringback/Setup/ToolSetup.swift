import RingbackClient

/// How one tool is made to ask Ringback.
protocol ToolSetup {
    /// The programs that this is for. It is not done if none of them is in `PATH`.
    var programs: [String] { get }

    /// What has to be done for these origins; no steps if all is done.
    ///
    /// - Parameter account: the account that the user named.
    func change(for origins: [OriginEntry], account: String?) throws(RingbackError) -> SetupPlan

    /// What has to be done to remove what ``change(for:account:)`` made, as far as it is still there.
    ///
    /// - Parameter origins: only for these; nil for everything.
    func removal(for origins: [OriginEntry]?, account: String?) throws(RingbackError) -> SetupPlan

    /// How the tool stands now.
    func standing(for origins: [OriginEntry]) throws(RingbackError) -> ToolStanding
}

/// What a change consists of, in order.
struct SetupPlan {
    var steps: [SetupStep] = []
    /// Sentences for the user.
    var notes: [String] = []
    /// The list of what was written, as it is after the change; nil if the tool needs none.
    var record: SetupRecord?
}

/// For which servers a tool asks Ringback.
struct ToolStanding {
    enum State: String {
        case notInstalled = "not installed"
        case notSetUp = "not set up"
        case setUp = "set up"
        /// For some servers of the origins.
        case inPart = "set up in part"
        /// Another helper is asked, before Ringback or in its place.
        case otherAnswers = "something else answers"
        /// Its configuration cannot be read; the notes say why.
        case unreadable = "cannot be read"
    }

    var state: State
    /// The servers for which the tool asks Ringback.
    var servers: [String] = []
    /// Sentences for the user.
    var notes: [String] = []

    /// - Parameters:
    ///   - missing: the number of things that are missing: servers, and links.
    ///   - hasOther: something else is asked.
    init(servers: [String], missing: Int, hasOther: Bool, notes: [String]) {
        state =
            switch (servers.isEmpty, hasOther) {
            case (_, true): .otherAnswers
            case (true, false): .notSetUp
            case (false, false): missing == 0 ? .setUp : .inPart
            }
        self.servers = servers
        self.notes = notes
    }

    private init(_ state: State, notes: [String] = []) {
        self.state = state
        self.notes = notes
    }

    static let notInstalled = ToolStanding(.notInstalled)

    static func unreadable(_ reason: String) -> ToolStanding { ToolStanding(.unreadable, notes: [reason]) }
}

/// The tools that can be set up.
enum ToolName: String, CaseIterable {
    case git, kubectl, docker, go, bazel, terraform, tofu, pnpm

    /// The names, as a part of a sentence.
    static let list = "git, kubectl, docker, go, bazel, terraform, tofu or pnpm"

    func setup() throws(RingbackError) -> any ToolSetup {
        switch self {
        case .git: try GitSetup()
        case .kubectl: try KubectlSetup()
        case .docker: try DockerSetup()
        case .go: try GoSetup()
        case .bazel: try LineSetup.bazel()
        case .terraform: try LineSetup.terraform()
        case .tofu: try LineSetup.tofu()
        case .pnpm: try LineSetup.pnpm()
        }
    }

    /// How the tool stands, also if it is not installed.
    func standing(for origins: [OriginEntry]) throws(RingbackError) -> ToolStanding {
        let setup = try setup()
        return setup.isInstalled ? try setup.standing(for: origins) : .notInstalled
    }
}

extension ToolSetup {
    var isInstalled: Bool { programs.contains(where: Tool.isInstalled) }

    /// This program, as the configuration of a tool names it: a stable path without a version, if there is one.
    static func program() throws(RingbackError) -> String {
        let folders = (SocketPlace.variable("PATH") ?? "").split(separator: ":").filter { $0.hasPrefix("/") }
        if let found = folders.map({ "\($0)/ringback" }).first(where: Programs.isSelf) { return found }
        guard let own = Programs.own, own.hasSuffix("/ringback") else {
            throw RingbackError(
                "setup_failed", "This program has no path that ends with /ringback, which a tool could run.")
        }
        return own
    }

    /// Runs a program for its output.
    ///
    /// - Parameter statuses: the exit statuses that are no failure.
    static func output(of words: [String], statuses: Set<Int32> = [0]) throws(RingbackError) -> [UInt8] {
        let (status, output) = try Programs.run(words)
        guard statuses.contains(status) else {
            throw RingbackError(
                "setup_failed", "\(words.joined(separator: " ")) ended with status \(status). Nothing was changed.")
        }
        return output
    }

    /// The error if there is nothing that the tool could ask for.
    static func noOrigin(of account: String?, _ needed: String) -> RingbackError {
        var error = RingbackError(
            .notFound, "There is no origin\(account.map { " of \($0)" } ?? "") that \(needed). Nothing was changed.")
        error.advice = "Run: ringback origin add URL --account \(account ?? "ACCOUNT")"
        return error
    }
}
