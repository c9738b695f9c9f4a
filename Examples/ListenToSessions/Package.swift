// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "ListenToSessions",
    dependencies: [.package(name: "ringback", path: "../..")],
    targets: [
        .executableTarget(
            name: "ListenToSessions", dependencies: [.product(name: "RingbackClient", package: "ringback")])
    ]
)
