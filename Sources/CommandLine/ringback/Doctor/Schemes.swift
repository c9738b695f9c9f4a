import Glibc
import RingbackAPI
import RingbackBase
import RingbackClient
import SchemeRegistration
import Terminal

/// Test links that are really sent: from here through the desktop to `ringback open`, to the daemon and back. Files
/// alone do not show whether that works: an opener may report success and start nothing.
struct SchemeTrips {
    private struct Trip {
        let scheme: URLScheme
        let id: String
        let opener: Int32
        let end: ContinuousClock.Instant
    }

    let calls: BrokerCalls?
    let socket: String?
    private var trips: [Trip] = []

    /// The command that starts a daemon, if none runs.
    let start: ShownCommand

    init(calls: BrokerCalls?, socket: String?, start: ShownCommand) {
        self.calls = calls
        self.start = start
        self.socket = socket
    }

    /// The limit for a link on a busy machine.
    private static let bound: Duration = .seconds(10)
    /// The limit after the opener has reported success.
    private static let grace: Duration = .seconds(5)

    /// Makes the desktop open a link of each scheme whose handler is ringback, and reports what is wrong with the
    /// others.
    mutating func begin(_ uses: [SchemeUse], _ report: inout DoctorReport) {
        guard !uses.isEmpty, let desktop = try? SchemeDesktop() else { return }
        for use in uses {
            if let warning = SchemeTrips.handlerTrouble(use, desktop) {
                report.add(warning)
            } else {
                launch(use.scheme, &report)
            }
        }
    }

    private static func line(
        _ scheme: URLScheme, _ level: DoctorReport.Level, _ message: String, command: ShownCommand? = nil
    ) -> DoctorReport.Line {
        .init(check: "scheme", subject: ("scheme", scheme.name), level: level, message: message, command: command)
    }

    /// Why no link of the scheme is opened: it must not start another program.
    static func handlerTrouble(_ use: SchemeUse, _ desktop: SchemeDesktop) -> DoctorReport.Line? {
        let scheme = use.scheme
        let register = ShownCommand("ringback scheme register \(scheme.name)")
        guard let handler = desktop.handler(of: scheme) else {
            return line(scheme, .wrong, "No program is registered for its links.", command: register)
        }
        guard let file = handler.ours, file.scheme == scheme else {
            // This is an error if an account uses the scheme, otherwise a warning.
            let level: DoctorReport.Level = use.isUsed ? .wrong : .warning
            return line(scheme, level, "Its links go to \(handler.name), not to ringback.", command: register)
        }
        guard Tool.isInstalled(file.program) else {
            return line(scheme, .wrong, "Its links go to \(file.program), which does not exist.", command: register)
        }
        guard use.isUsed else {
            return line(
                scheme, .warning, "Its links come to ringback, but no account uses it: they are rejected.",
                command: ShownCommand("ringback scheme unregister \(scheme.name)"))
        }
        return nil
    }

    private mutating func launch(_ scheme: URLScheme, _ report: inout DoctorReport) {
        guard let calls else {
            return report.add(
                SchemeTrips.line(scheme, .warning, "Without a daemon its links cannot be tried.", command: start))
        }
        guard SchemeDesktop.hasSession else {
            return report.add(
                SchemeTrips.line(
                    scheme, .warning,
                    "Its links could not be tried: there is no desktop session here (neither DISPLAY nor "
                        + "WAYLAND_DISPLAY is set). Run ringback doctor on the desktop."))
        }
        let link: JSON
        do throws(RingbackError) {
            link = try calls.call(.makeDiagnosticLink, body: ["scheme": .string(scheme.name)])
        } catch {
            // The daemon does not know the scheme yet, or too many links are being tested.
            return report.add(
                SchemeTrips.line(
                    scheme, .wrong, "Its links cannot be tried: \(error.detail)", command: "ringback reload"))
        }
        guard let id = link["id"]?.string, let url = link["url"]?.string else { return }
        guard
            let opener = Subprocess.start(
                ["xdg-open", url], output: .nothing, errors: .nothing, environment: SchemeTrips.environment(socket))
        else {
            return report.add(
                SchemeTrips.line(
                    scheme, .wrong, "There is no xdg-open to open its links with.",
                    command: "sudo apt install xdg-utils"))
        }
        trips.append(Trip(scheme: scheme, id: id, opener: opener, end: .now + SchemeTrips.bound))
    }

    /// The handler finds the daemon by itself. Only a socket that was named here has to be passed on.
    private static func environment(_ socket: String?) -> [String]? {
        guard let socket else { return nil }
        var variables: [String] = []
        var entry = unsafe environ
        while let text = unsafe entry.pointee {
            let variable = unsafe String(cString: text)
            if !variable.hasPrefix("RINGBACK_SOCK=") { variables.append(variable) }
            unsafe entry += 1
        }
        return variables + ["RINGBACK_SOCK=\(socket)"]
    }

    // MARK: Coming back

    /// Waits for the links, each until its own limit.
    func finish(_ report: inout DoctorReport) {
        guard let calls else { return }
        for trip in trips {
            report.add(wait(for: trip, calls))
        }
    }

    private func wait(for trip: Trip, _ calls: BrokerCalls) -> DoctorReport.Line {
        var status: Int32?
        var end = trip.end
        while true {
            let answer = try? calls.call(
                .getDiagnosticLink, [trip.id], query: [("wait", "1")], timeout: .seconds(5))
            if answer?["arrived"]?.bool == true {
                if status == nil { SchemeTrips.collect(trip.opener) }
                return SchemeTrips.arrived(trip.scheme, answer?["executable"]?.string)
            }
            if status == nil {
                status = Subprocess.endedStatus(trip.opener)
                if status == 0 { end = min(end, .now + SchemeTrips.grace) }
            }
            if let status, status != 0 {
                return SchemeTrips.line(
                    trip.scheme, .wrong, "xdg-open cannot open its links: it ended with status \(status).",
                    command: SchemeTrips.command(trip.scheme))
            }
            if ContinuousClock.now >= end { break }
        }
        if status == nil {
            kill(-trip.opener, SIGKILL)
            Subprocess.wait(trip.opener)
            return SchemeTrips.line(
                trip.scheme, .wrong,
                "xdg-open did not open a link of it within \(SchemeTrips.bound.components.seconds) s.",
                command: SchemeTrips.command(trip.scheme))
        }
        let desktop = SocketPlace.variable("XDG_CURRENT_DESKTOP") ?? ""
        return SchemeTrips.line(
            trip.scheme, .wrong,
            "Its links are lost: xdg-open reported success, but no link reached ringback."
                + (desktop.isEmpty ? "" : " The desktop is \(desktop); its own opener may be missing."),
            command: SchemeTrips.command(trip.scheme))
    }

    private static func arrived(_ scheme: URLScheme, _ executable: String?) -> DoctorReport.Line {
        guard let executable, !Programs.isSelf(executable) else {
            return line(scheme, .ok, "A link that the desktop opened came back.")
        }
        return line(
            scheme, .warning, "A link that the desktop opened came back through another program: \(executable)",
            command: ShownCommand("ringback scheme register \(scheme.name)"))
    }

    /// Waits for the opener, but not long: it may run as long as the program that it started.
    private static func collect(_ opener: Int32) {
        let end = ContinuousClock.now + .seconds(2)
        while Subprocess.endedStatus(opener) == nil, ContinuousClock.now < end { usleep(10_000) }
    }

    private static func command(_ scheme: URLScheme) -> ShownCommand {
        let desktops = (SocketPlace.variable("XDG_CURRENT_DESKTOP") ?? "").split(separator: ":")
        return desktops.contains("KDE")
            ? "sudo apt install kde-cli-tools" : ShownCommand("ringback scheme register \(scheme.name)")
    }
}
