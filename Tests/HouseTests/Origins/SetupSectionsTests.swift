// `ringback setup` for tools whose configuration has sections: cargo and AWS's tools.

import Glibc
import StrictJSON
import Testing

@Suite struct `ringback setup in files of sections` {
    private static let configuration =
        Stage.twoAccounts + """
            [accounts.work.aws]
            role_arn = "arn:aws:iam::123456789012:role/work"
            region = "eu-central-1"

            [[origin]]
            url = "https://cargo.example.org/index/*"
            account = "work"

            """

    /// A tool, its file in the home directory, what the file has before, and what is added to it.
    struct Tool: Sendable, CustomTestStringConvertible {
        let name: String
        let file: String
        let former: String
        let added: String
        let servers: String

        var testDescription: String { "\(name), \(former.isEmpty ? "without a file" : "with a file")" }

        private static let list = "global-credential-providers = [\"cargo:token\", \"{ringback} cargo-credential\"]\n"
        private static let process = "credential_process = {ringback} aws-credentials work\n"

        static let all = [
            Tool(
                name: "cargo", file: ".cargo/config.toml", former: "", added: "[registry]\n\(list)",
                servers: "https://cargo.example.org/index/*"),
            Tool(
                name: "cargo", file: ".cargo/config.toml", former: "# mine\n[net]\noffline = false  # not now\n",
                added: "\n[registry]\n\(list)", servers: "https://cargo.example.org/index/*"),
            Tool(name: "aws", file: ".aws/config", former: "", added: "[profile work]\n\(process)", servers: "work"),
            Tool(
                name: "aws", file: ".aws/config", former: "[default]\nregion = eu-central-1\n",
                added: "\n[profile work]\n\(process)", servers: "work"),
        ]
    }

    private func install(_ name: String, on stage: Stage) throws {
        try stage.write("#!/bin/sh\n", to: "\(stage.directory)/bin/\(name)", mode: 0o700)
    }

    private func row(_ name: String, on stage: Stage) async throws -> String {
        try await stage.ringback("setup").lines.first { $0.hasPrefix("\(name) ") } ?? ""
    }

    @Test(arguments: Tool.all) func `a line is added, and removed again`(tool: Tool) async throws {
        try await Stage.play(Self.configuration, startsDaemon: false) { stage in
            let path = "\(stage.directory)/home/\(tool.file)"
            try install(tool.name, on: stage)
            FileTree.makeDirectory("\(stage.directory)/home/\(tool.name == "aws" ? ".aws" : ".cargo")")
            if !tool.former.isEmpty { try stage.write(tool.former, to: path, mode: 0o640) }
            #expect(try await row(tool.name, on: stage).contains(" not set up"))

            let shown = try await stage.ringback("setup", tool.name, "--print")
            #expect(shown.status == 0 && shown.out.contains("\(path): add "), "\(shown)")
            #expect((FileTree.text(of: path) ?? "") == tool.former)
            let done = try await stage.ringback("setup", tool.name, "--yes")
            #expect(done.status == 0 && done.out == shown.out, "\(done)")
            let added = tool.added.replacing("{ringback}", with: Programs.path("ringback"))
            #expect(FileTree.text(of: path) == tool.former + added)
            let row = try await row(tool.name, on: stage)
            #expect(row.contains(" set up ") && row.hasSuffix(tool.servers), "\(row)")
            let again = try await stage.ringback("setup", tool.name)
            #expect(again.status == 0 && again.out.isEmpty && again.err.contains("nothing to change"), "\(again)")

            // Also after the tool itself was removed.
            #expect(unsafe unlink("\(stage.directory)/bin/\(tool.name)") == 0)
            let undone = try await stage.ringback("setup", tool.name, "--undo", "--yes")
            #expect(undone.status == 0 && FileTree.text(of: path) == tool.former, "\(undone)")
            let nothing = try await stage.ringback("setup", tool.name, "--undo", "--yes")
            #expect(nothing.status == 0 && nothing.out.isEmpty && nothing.err.contains("nothing to remove"))
        }
    }

    @Test func `cargo's other providers stay, and their comments`() async throws {
        try await Stage.play(Self.configuration, startsDaemon: false) { stage in
            let folder = "\(stage.directory)/home/.cargo"
            try install("cargo", on: stage)
            FileTree.makeDirectory(folder)
            let former = "[registry]\nglobal-credential-providers = [\n  \"cargo:libsecret\",  # mine\n]\n"
            try stage.write(former, to: "\(folder)/config.toml")
            #expect(try await stage.ringback("setup", "cargo", "--yes").status == 0)
            let ours = "\(Programs.path("ringback")) cargo-credential"
            let text = try #require(FileTree.text(of: "\(folder)/config.toml"))
            #expect(text == former.replacing("\",", with: "\", \"\(ours)\","))
            // Another one behind it is asked first.
            try stage.write(text.replacing("\(ours)\",", with: "\(ours)\", \"b\","), to: "\(folder)/config.toml")
            let row = try await row("cargo", on: stage)
            #expect(row.contains("something else answers"), "\(row)")
            #expect(try await stage.ringback("setup", "cargo", "--undo", "--yes").status == 0)
            #expect(FileTree.text(of: "\(folder)/config.toml") == former.replacing("\",", with: "\", \"b\","))

            try stage.write("registry.default = \"a\"\n", to: "\(folder)/config.toml")
            let refused = try await stage.ringback("setup", "cargo", "--yes")
            #expect(refused.status == 1 && refused.err.contains("a form that is not read here"), "\(refused)")
            // What was written by hand stays.
            try stage.write(
                "[registry]\nglobal-credential-providers = [\"ringback cargo-credential\"]\n",
                to: "\(folder)/config.toml")
            let hand = try await stage.ringback("setup", "cargo", "--undo", "--yes")
            #expect(hand.out.isEmpty && hand.err.contains("did not write. It stays"), "\(hand)")
        }
    }

    @Test func `what AWS's tools use in place of Ringback is said, without its secret`() async throws {
        try await Stage.play(Self.configuration, startsDaemon: false) { stage in
            let folder = "\(stage.directory)/home/.aws"
            // For libraries alone there is no program.
            FileTree.makeDirectory(folder)
            try stage.write(
                "[profile work]\ncredential_process = /opt/other --secret hunter2\n", to: "\(folder)/config")
            let other = try await stage.ringback("setup", "aws", "--yes")
            #expect(other.status == 0 && other.out.isEmpty && other.err.contains("which stays"), "\(other)")
            #expect(!other.err.contains("hunter2"), "\(other)")
            try stage.write("[profile work]\nregion = a\n", to: "\(folder)/config")
            let keys = "[work]\naws_access_key_id = AKIA\naws_secret_access_key = hunter2\n"
            try stage.write(keys, to: "\(folder)/credentials")
            let warned = try await stage.ringback("setup", "aws", "--yes")
            #expect(warned.status == 0 && warned.err.contains("credentials has keys for the profile work"), "\(warned)")
            #expect(!(warned.out + warned.err).contains("hunter2"), "\(warned)")
            #expect(try await row("aws", on: stage).contains("something else answers"))
            #expect(
                FileTree.text(of: "\(folder)/config")
                    == "[profile work]\ncredential_process = \(Programs.path("ringback")) aws-credentials work\n"
                    + "region = a\n")
            #expect(try await stage.ringback("setup", "aws", "--undo", "--yes").status == 0)
            #expect(FileTree.text(of: "\(folder)/config") == "[profile work]\nregion = a\n")

            let none = try await stage.ringback("setup", "aws", "--account", "home", "--yes")
            #expect(none.status == 1 && none.err.contains("[accounts.home.aws]"), "\(none)")
        }
    }
}
