import RingbackClient
import StrictJSON
import Terminal

/// The tools that ask Ringback for tokens.
extension DoctorReport {
    /// Checks that tools that were set up ask Ringback, and nothing before it. Other tools are not named.
    ///
    /// - Parameter manager: the `PATH` of the user manager; nil if there is none.
    mutating func lookAtTools(of configuration: JSON?, manager: SearchPath?) {
        guard let configuration else { return }
        let targets = SetupTargets(in: configuration)
        for tool in ToolName.allCases {
            let command = ShownCommand("ringback setup \(tool.rawValue)")
            do throws(RingbackError) {
                let standing = try tool.standing(for: targets)
                switch standing.state {
                case .notInstalled, .notSetUp: break
                case .setUp where standing.notes.isEmpty, .inPart where standing.notes.isEmpty:
                    let link = try tool.setup().linkInPath
                    if let note = manager.flatMap({ link?.note(ofManager: $0) }) {
                        add("tool", .warning, "\(tool.rawValue): \(note)")
                    } else {
                        let servers = standing.servers.joined(separator: ", ")
                        add("tool", .ok, "\(tool.rawValue) asks Ringback for \(servers).")
                    }
                default:
                    add(
                        "tool", .warning, "\(tool.rawValue): \(standing.notes.joined(separator: " "))", command: command
                    )
                }
            } catch {
                add("tool", .warning, "\(tool.rawValue): \(error.detail)", command: command)
            }
        }
    }
}
