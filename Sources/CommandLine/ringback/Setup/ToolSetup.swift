import RingbackBase
import RingbackClient
import Terminal

/// How one tool is made to ask Ringback.
protocol ToolSetup {
    /// The programs that this is for.
    var programs: [String] { get }

    /// True if there is a tool to set up.
    var isInstalled: Bool { get }

    /// True if the entries can only be removed by the tool's own command; false for files that are changed here.
    var needsProgramToUndo: Bool { get }

    /// What can be done where there is no such program; nil if that is to install it.
    var adviceToInstall: String? { get }

    /// The link that the tool looks for in `PATH`; nil for a tool that is told a path.
    var linkInPath: HelperLink? { get }

    /// What has to be done for these targets; no steps if all is done.
    ///
    /// - Parameter account: the account that the user named.
    func change(for targets: SetupTargets, account: String?) throws(RingbackError) -> SetupPlan

    /// What has to be done to remove what ``change(for:account:)`` made, as far as it is still there.
    ///
    /// - Parameter targets: only for these; nil for everything.
    func removal(for targets: SetupTargets?, account: String?) throws(RingbackError) -> SetupPlan

    /// The tool's current state.
    func standing(for targets: SetupTargets) throws(RingbackError) -> ToolStanding
}

/// What the configuration has that a tool can ask for.
struct SetupTargets {
    var origins: [OriginEntry]

    /// Of a report of the configuration.
    init(in report: JSON) {
        origins = OriginEntry.all(in: report)
    }

    /// Only those of an account.
    func of(_ account: String) -> SetupTargets {
        var part = self
        part.origins = origins.filter { $0.account == account }
        return part
    }
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
    case git, kubectl, docker, go

    /// The names, as a part of a sentence.
    static let list = "git, kubectl, docker or go"

    func setup() throws(RingbackError) -> any ToolSetup {
        switch self {
        case .git: try GitSetup()
        case .kubectl: try KubectlSetup()
        case .docker: try DockerSetup()
        case .go: try GoSetup()
        }
    }

    /// How the tool stands, also if it is not installed.
    func standing(for targets: SetupTargets) throws(RingbackError) -> ToolStanding {
        let setup = try setup()
        return setup.isInstalled ? try setup.standing(for: targets) : .notInstalled
    }
}

extension ToolSetup {
    var linkInPath: HelperLink? { nil }

    var needsProgramToUndo: Bool { false }

    var adviceToInstall: String? { nil }

    /// True if one of the programs is in `PATH`.
    var isInstalled: Bool { programs.contains(where: Tool.isInstalled) }

    /// The home directory.
    static func home() throws(RingbackError) -> String {
        guard let home = SocketPlace.variable("HOME"), home.hasPrefix("/") else {
            throw RingbackError("no_place", "HOME is not the absolute path of a directory.")
        }
        return home
    }

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
        error.advice = "Run: \(shown: "ringback origin add URL --account=\(account ?? "ACCOUNT")")"
        return error
    }
}
