// `ringback setup` for tools whose configuration is lines: Bazel, Terraform, OpenTofu and pnpm.

import Glibc
import StrictJSON
import Testing

@Suite struct `ringback setup in files of lines` {
    private static let origins =
        Stage.twoAccounts
        + [("https://tools.example.org/*", "work"), ("https://npm.example.org/team/*", "home")]
        .map { "[[origin]]\nurl = \"\($0.0)\"\naccount = \"\($0.1)\"\n\n" }.joined()

    /// A tool, its file, and what is in the file before and after.
    struct Tool: Sendable, CustomTestStringConvertible {
        let name: String
        let file: String
        let former: String
        /// `{home}` is the home directory.
        let added: String
        let links: [String]
        let servers: String

        var testDescription: String { name }

        static let all = [
            Tool(
                name: "bazel", file: ".bazelrc", former: "# mine\nbuild --jobs=4  # few\n",
                added: "common --credential_helper=tools.example.org={home}/.local/bin/bazel-credential-ringback\n",
                links: [".local/bin/bazel-credential-ringback"], servers: "tools.example.org"),
            Tool(
                name: "terraform", file: ".terraformrc",
                former: "plugin_cache_dir = \"/tmp/*/a\" // mine\n\n/* credentials_helper \"a\" {} */\n",
                added: "credentials_helper \"ringback\" {}\n",
                links: [".terraform.d/plugins/terraform-credentials-ringback"], servers: "tools.example.org"),
            Tool(
                name: "tofu", file: ".tofurc", former: "# mine\n", added: "credentials_helper \"ringback\" {}\n",
                links: [".terraform.d/plugins/terraform-credentials-ringback"], servers: "tools.example.org"),
            Tool(
                name: "pnpm", file: ".npmrc", former: "; mine\nregistry=https://npm.example.org/team/\n",
                added: """
                    //tools.example.org/:tokenHelper={home}/.local/bin/pnpm-ringback-tools.example.org
                    //npm.example.org/team/:tokenHelper={home}/.local/bin/pnpm-ringback-npm.example.org%2Fteam

                    """,
                links: [
                    ".local/bin/pnpm-ringback-tools.example.org", ".local/bin/pnpm-ringback-npm.example.org%2Fteam",
                ], servers: "tools.example.org npm.example.org/team"),
        ]
    }

    private func install(_ name: String, on stage: Stage) throws {
        try stage.write("#!/bin/sh\n", to: "\(stage.directory)/bin/\(name)", mode: 0o700)
    }

    private func row(_ name: String, on stage: Stage) async throws -> String {
        try await stage.ringback("setup").lines.first { $0.hasPrefix("\(name) ") } ?? ""
    }

    @Test(arguments: Tool.all)
    func `a line is added with its link, and both are removed again`(tool: Tool) async throws {
        try await Stage.play(Self.origins, startsDaemon: false) { stage in
            let home = "\(stage.directory)/home"
            try install(tool.name, on: stage)
            // As from a directory of dotfiles.
            let file = "\(stage.directory)/dotfile"
            try stage.write(tool.former, to: file, mode: 0o640)
            #expect(unsafe symlink(file, "\(home)/\(tool.file)") == 0)
            #expect(try await row(tool.name, on: stage).contains(" not set up"))

            let shown = try await stage.ringback("setup", tool.name, "--print")
            #expect(shown.status == 0 && shown.out.contains("\(home)/\(tool.file): add "), "\(shown)")
            #expect(tool.links.allSatisfy { shown.out.contains($0) }, "\(shown)")
            let refused = try await stage.ringback("setup", tool.name)
            #expect(refused.status == 4 && refused.err.contains("--yes"), "\(refused)")
            #expect(FileTree.text(of: file) == tool.former && FileTree.target(of: "\(home)/\(tool.links[0])") == nil)

            let done = try await stage.ringback("setup", tool.name, "--yes")
            #expect(done.status == 0 && done.out == shown.out, "\(done)")
            #expect(FileTree.text(of: file) == tool.former + tool.added.replacing("{home}", with: home))
            #expect(FileTree.target(of: "\(home)/\(tool.file)") == file && FileTree.mode(of: file) == 0o640)
            for link in tool.links { #expect(FileTree.target(of: "\(home)/\(link)")?.hasSuffix("/ringback") == true) }
            let row = try await row(tool.name, on: stage)
            #expect(row.contains(" set up ") && row.hasSuffix(tool.servers), "\(row)")
            let again = try await stage.ringback("setup", tool.name)
            #expect(again.status == 0 && again.out.isEmpty && again.err.contains("nothing to change"), "\(again)")

            // Also after the tool itself was removed.
            #expect(unsafe unlink("\(stage.directory)/bin/\(tool.name)") == 0)
            let undone = try await stage.ringback("setup", tool.name, "--undo", "--yes")
            #expect(undone.status == 0 && FileTree.text(of: file) == tool.former, "\(undone)")
            #expect(FileTree.target(of: "\(home)/\(tool.file)") == file)
            for link in tool.links { #expect(FileTree.target(of: "\(home)/\(link)") == nil) }
            let nothing = try await stage.ringback("setup", tool.name, "--undo", "--yes")
            #expect(nothing.status == 0 && nothing.out.isEmpty && nothing.err.contains("nothing to remove"))
        }
    }

    @Test func `what others wrote stays, and is named without its secret`() async throws {
        try await Stage.play(Self.origins, startsDaemon: false) { stage in
            let home = "\(stage.directory)/home"
            for name in ["pnpm", "terraform", "bazel"] { try install(name, on: stage) }
            let former = "//tools.example.org/:_authToken=hunter2\n"
            try stage.write(former, to: "\(home)/.npmrc")
            let pnpm = try await stage.ringback("setup", "pnpm", "--yes")
            #expect(pnpm.status == 0 && pnpm.err.contains("which stays: _authToken"), "\(pnpm)")
            #expect(!(pnpm.out + pnpm.err).contains("hunter2"), "\(pnpm)")
            let text = FileTree.text(of: "\(home)/.npmrc") ?? ""
            #expect(text.hasPrefix(former) && !text.contains("//tools.example.org/:tokenHelper"), "\(text)")
            let row = try await row("pnpm", on: stage)
            #expect(row.contains("something else answers") && row.hasSuffix(" npm.example.org/team"), "\(row)")

            // A second block of this name would be an error of Terraform's.
            try stage.write("credentials_helper \"other\" {}\n", to: "\(home)/.terraformrc")
            let terraform = try await stage.ringback("setup", "terraform", "--yes")
            #expect(terraform.status == 0 && terraform.out.isEmpty, "\(terraform)")
            #expect(terraform.err.contains("every server, which stays: other"), "\(terraform)")
            let block = "credentials \"tools.example.org\" {\n  token = \"hunter2\"\n}\n"
            try stage.write(block, to: "\(home)/.terraformrc")
            let beside = try await stage.ringback("setup", "terraform", "--yes")
            #expect(beside.status == 0 && beside.err.contains("uses in place of Ringback's"), "\(beside)")
            #expect(!(beside.out + beside.err).contains("hunter2"), "\(beside)")

            // A line that was written by hand, and a file in the link's place.
            let written = "build --credential_helper=tools.example.org=/opt/bazel-credential-ringback\n"
            try stage.write(written, to: "\(home)/.bazelrc")
            let hand = try await stage.ringback("setup", "bazel", "--undo", "--yes")
            #expect(hand.out.isEmpty && hand.err.contains("did not write. It stays"), "\(hand)")
            FileTree.remove("\(home)/.bazelrc")
            FileTree.makeDirectory("\(home)/.local")
            FileTree.makeDirectory("\(home)/.local/bin")
            try stage.write("mine", to: "\(home)/.local/bin/bazel-credential-ringback")
            let taken = try await stage.ringback("setup", "bazel", "--yes")
            #expect(taken.status == 1 && taken.err.contains("Move it away"), "\(taken)")
            #expect(FileTree.text(of: "\(home)/.bazelrc") == nil)
        }
    }

    @Test func `one account's lines are removed alone, and a link that another tool needs stays`() async throws {
        try await Stage.play(Self.origins, startsDaemon: false) { stage in
            let home = "\(stage.directory)/home"
            for name in ["pnpm", "terraform", "tofu"] { try install(name, on: stage) }
            #expect(try await stage.ringback("setup", "pnpm", "--yes").status == 0)
            #expect(try await stage.ringback("setup", "pnpm", "--account", "home", "--undo", "--yes").status == 0)
            let left = FileTree.text(of: "\(home)/.npmrc") ?? ""
            #expect(left.contains("tools.example.org") && !left.contains("npm.example.org"), "\(left)")
            #expect(FileTree.target(of: "\(home)/.local/bin/pnpm-ringback-tools.example.org") != nil)

            // OpenTofu reads Terraform's file only as long as it has none of its own.
            try stage.write("# mine\n", to: "\(home)/.tofurc")
            for name in ["terraform", "tofu"] {
                #expect(try await stage.ringback("setup", name, "--yes").status == 0)
            }
            let link = "\(home)/.terraform.d/plugins/terraform-credentials-ringback"
            #expect(try await stage.ringback("setup", "terraform", "--undo", "--yes").status == 0)
            #expect(FileTree.target(of: link) != nil && FileTree.text(of: "\(home)/.terraformrc") == "")
            #expect(try await stage.ringback("setup", "tofu", "--undo", "--yes").status == 0)
            #expect(FileTree.target(of: link) == nil && FileTree.text(of: "\(home)/.tofurc") == "# mine\n")

            FileTree.remove("\(home)/.tofurc")
            let shared = try await stage.ringback("setup", "tofu", "--print")
            #expect(shared.out.contains("\(home)/.terraformrc: add"), "\(shared)")
            try stage.write("{}", to: "\(home)/.terraformrc")
            let refused = try await stage.ringback("setup", "tofu", "--yes")
            #expect(refused.status == 1 && refused.err.contains("a form that is not read here"), "\(refused)")
            #expect(try await row("tofu", on: stage).contains("cannot be read"))
        }
    }
}
