// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "ProjectProfile",
    dependencies: [.package(name: "ringback", path: "../..")],
    targets: [
        .executableTarget(
            name: "ProjectProfile", dependencies: [.product(name: "RingbackClient", package: "ringback")])
    ]
)
