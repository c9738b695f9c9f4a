import Adapters
import HTTPMessages
import RingbackClient

/// go: the command of `GOAUTH`, by `go env -w`. go asks Ringback for every server that refuses a request, after the
/// commands that are there already.
struct GoSetup: ToolSetup {
    let programs = ["go"]
    let needsProgramToUndo = true
    private let program: String

    init() throws(RingbackError) { program = try GoSetup.program() }

    func change(for targets: SetupTargets, account: String?) throws(RingbackError) -> SetupPlan {
        let origins = targets.origins
        guard origins.contains(where: { GoConfiguration.isUsable($0.rule) }) else {
            throw GoSetup.noOrigin(of: account, "go can ask for: one with https, without a user name")
        }
        let configuration = try configuration()
        guard !configuration.isOff else {
            throw RingbackError(
                "setup_failed", "GOAUTH is off, and go accepts no command beside that. Nothing was changed.")
        }
        guard let value = configuration.adding(program) else {
            throw RingbackError("setup_failed", "\(program) has a character that go splits a command at.")
        }
        guard GoConfiguration(value: value.utf8) != configuration else { return SetupPlan() }
        return plan([.command(["go", "env", "-w", "\(GoConfiguration.variable)=\(value)"])])
    }

    func removal(for targets: SetupTargets?, account: String?) throws(RingbackError) -> SetupPlan {
        switch try configuration().removal {
        case .nothing: return SetupPlan()
        case .unset: return plan([.command(["go", "env", "-u", GoConfiguration.variable])])
        case .set(let value): return plan([.command(["go", "env", "-w", "\(GoConfiguration.variable)=\(value)"])])
        }
    }

    func standing(for targets: SetupTargets) throws(RingbackError) -> ToolStanding {
        let origins = targets.origins
        let servers = origins.filter { GoConfiguration.isUsable($0.rule) }.map(\.rule.pattern.text)
        guard try configuration().isAsked else {
            return ToolStanding(servers: [], missing: servers.count, hasOther: false, notes: [])
        }
        return ToolStanding(servers: servers, missing: 0, hasOther: false, notes: [])
    }

    private func plan(_ steps: [SetupStep]) -> SetupPlan {
        var plan = SetupPlan(steps: steps)
        if SocketPlace.variable(GoConfiguration.variable)?.isEmpty == false {
            plan.notes.append("The variable GOAUTH is set in the environment, which takes precedence.")
        }
        return plan
    }

    private func configuration() throws(RingbackError) -> GoConfiguration {
        // Outside of a module: a version of go that a module names would be fetched first.
        GoConfiguration(value: try GoSetup.output(of: ["go", "-C", "/", "env", GoConfiguration.variable]))
    }
}
