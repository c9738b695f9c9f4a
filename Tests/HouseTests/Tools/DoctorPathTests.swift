import RingbackBase
import Testing

@Suite struct `the doctor, with a PATH for the shell and another one for the service manager` {
    private func write(managerPath: String, on stage: Stage) throws {
        try stage.write(
            "#!/bin/sh\ncase \"$*\" in *show-environment*) echo 'LANG=C'; echo 'PATH=\(managerPath)' ;; "
                + "*is-failed*) echo active; exit 1 ;; *is-enabled*) echo enabled ;; *is-active*) echo active ;; esac\n",
            to: "\(stage.directory)/bin/systemctl", mode: 0o700)
    }

    private func lines(_ check: String, of stage: Stage, folder: String) async throws -> [JSON] {
        let output = try await stage.ringback(
            "doctor", "--json", environment: ["PATH": "\(folder):\(stage.directory)/bin:/usr/bin:/bin"])
        let checks = try output.json["checks"]?.array ?? []
        return checks.filter { $0["check"]?.string == check }
    }

    @Test func `doctor says that desktop programs do not find docker's helper`() async throws {
        let origin = "[[origin]]\nurl = \"https://r.example.org/*\"\naccount = \"work\"\n"
        try await Stage.play(Stage.twoAccounts + origin) { stage in
            let links = "\(stage.directory)/home/.local/bin"
            try stage.write("#!/bin/sh\n", to: "\(stage.directory)/bin/docker", mode: 0o700)
            try await stage.ringback("setup", "docker", "--yes", status: 0)

            try write(managerPath: "/usr/bin:/bin", on: stage)
            let missed = try await lines("tool", of: stage, folder: links)
            let message = missed.compactMap { $0["message"]?.string }.first { $0.hasPrefix("docker: ") } ?? ""
            #expect(message.contains("do not find docker-credential-ringback: \(links) is not in the"), "\(missed)")
            #expect(message.contains("~/.config/environment.d/path.conf"), "\(missed)")
            #expect(missed.contains { $0["level"] == "warning" }, "\(missed)")

            try write(managerPath: "\(links):/usr/bin:/bin", on: stage)
            let found = try await lines("tool", of: stage, folder: links)
            #expect(found.contains { $0["message"] == "docker asks Ringback for r.example.org." }, "\(found)")
        }
    }

    @Test func `a folder with the name of a tool is no tool`() async throws {
        try await Stage.play("") { stage in
            let folder = "\(stage.directory)/programs"
            FileTree.makeDirectory(folder)
            FileTree.makeDirectory("\(folder)/docker")
            func row() async throws -> String {
                let list = try await stage.ringback("setup", environment: ["PATH": folder])
                return list.lines.first { $0.hasPrefix("docker ") } ?? ""
            }
            #expect(try await row().hasSuffix("not installed"))
            try stage.write("#!/bin/sh\n", to: "\(stage.directory)/bin/docker", mode: 0o700)
            let there = try await stage.ringback("setup", environment: ["PATH": "\(folder):\(stage.directory)/bin"])
            #expect(there.lines.contains { $0.hasPrefix("docker ") && !$0.hasSuffix("not installed") }, "\(there)")
        }
    }
}
