import Testing

@Suite struct `The metrics for Prometheus` {
    @Test func `are left as one file by the command of the unit in the documents`() async throws {
        let units = try #require(
            try Document(path: "docs/services.md").blocks(in: "conf").first { $0.contains("ringback-metrics.service") })
        let lines = units.split(separator: "\n")
        let start = "ExecStart=/bin/sh -c '"
        let command = try #require(lines.first { $0.hasPrefix(start) }).dropFirst(start.count).dropLast()
        // A user manager's PATH may lack what the tarball's `./install` writes to.
        #expect(lines.contains { $0.hasPrefix("Environment=PATH=%h/.local/bin:") })
        try await Stage.playReader { stage in
            let folder = "\(stage.directory)/collector"
            let done = try await stage.run(
                "/bin/sh", ["-c", "mkdir \(folder) && cd \(folder) && \(command) && ls && head -n 1 ringback.prom"],
                environment: stage.readersEnvironment, status: 0)
            #expect(done.out.hasPrefix("ringback.prom\n# HELP ringback_"), "\(done)")
        }
    }
}
