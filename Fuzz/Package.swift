// swift-tools-version: 6.2
import PackageDescription

// The sources are the house's own, by links; only they are instrumented, not what comes from outside. Built as the
// daemon is (optimized), with what a fuzzer needs: coverage of every branch, and an end at the first bad byte access.

let strict: [SwiftSetting] = [
    .strictMemorySafety(),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .unsafeFlags(["-sanitize=fuzzer,address", "-enable-testing"]),
]

func library(_ name: String, _ dependencies: [Target.Dependency] = [], exclude: [String] = []) -> Target {
    .target(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: strict)
}

let package = Package(
    name: "ringback-fuzz",
    targets: [
        .systemLibrary(name: "COpenSSL"),
        .systemLibrary(name: "CFuzzer"),
        .target(name: "CLinux"),
        .target(name: "CPostgres"),
        library("Secrets"),
        library("StrictJSON"),
        library("Encodings"),
        library("FilePaths"),
        library("HTTPMessages", ["Encodings", "Secrets"]),
        library("RingbackAPI", ["StrictJSON"]),
        library("Cryptography", ["COpenSSL", "Encodings", "Secrets"]),
        // Without the part that depends on another package.
        library("LocalHTTP", ["CLinux", "HTTPMessages"], exclude: ["HTTPServer.swift"]),
        library("RingbackClient", ["RingbackAPI", "Encodings", "StrictJSON", "CLinux"]),
        library("Records", ["CLinux", "Encodings", "StrictJSON"]),
        library("OAuth", ["Cryptography", "Encodings", "HTTPMessages", "Secrets", "StrictJSON"]),
        library("SupabaseAuth", ["OAuth", "Cryptography", "Encodings", "HTTPMessages", "Secrets", "StrictJSON"]),
        library("SessionVault", ["CLinux", "Cryptography", "Encodings", "FilePaths", "Secrets", "StrictJSON"]),
        library(
            "Configuration",
            [
                "MCPBridge", "OAuth", "SupabaseAuth", "PostgresClient", "Encodings", "FilePaths", "HTTPMessages",
                "Secrets",
                "StrictJSON",
            ]
        ),
        // Only what tells links from callbacks: the desk behind it needs the whole broker.
        library("DeepLinks", ["HTTPMessages"]),
        library("SchemeRegistration", ["HTTPMessages"]),
        library("SignInPage", ["Cryptography", "Encodings", "HTTPMessages", "Secrets"]),
        library("Terminal"),
        library("MCPBridge", ["RingbackClient", "HTTPMessages", "Encodings", "StrictJSON", "Terminal"]),
        library("Adapters", ["Encodings", "HTTPMessages", "StrictJSON"]),
        // Only the record: what writes the files needs the whole broker.
        library("KeptFiles", ["Encodings", "StrictJSON"]),
        library("PostgresClient", ["CPostgres", "CLinux", "Secrets"]),
        library("SharedVault", ["SessionVault", "Cryptography", "Secrets", "StrictJSON"]),
        // Without the statements.
        library("RowDatabase", ["SharedVault", "PostgresClient", "SessionVault"]),
        library(
            "FuzzLaws",
            [
                "Adapters", "DeepLinks", "KeptFiles", "MCPBridge", "SchemeRegistration", "SignInPage",
                "LocalHTTP", "RingbackClient", "Records", "OAuth", "SupabaseAuth", "SessionVault", "Configuration",
                "HTTPMessages", "Secrets", "StrictJSON", "Cryptography", "RingbackAPI", "Encodings", "PostgresClient",
                "SharedVault", "RowDatabase", "Terminal",
            ]
        ),
        .executableTarget(
            name: "fuzz", dependencies: ["FuzzLaws", "CFuzzer"], swiftSettings: strict,
            // gold fails on the debug information of instrumented code.
            linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address", "-use-ld=lld"])]
        ),
    ],
    swiftLanguageModes: [.v6],
    cLanguageStandard: .c17
)
