// swift-tools-version: 6.2
// The fuzzers are a separate package, so that the product never links a sanitizer.
// CONTRIBUTING.md, "Fuzzers", describes how to build and run them.
import PackageDescription

let package = Package(
  name: "fuzzers",
  dependencies: [.package(name: "sandboxctl", path: "..")],
  targets: [
    .executableTarget(
      name: "fuzz",
      dependencies: [.product(name: "SandboxctlModules", package: "sandboxctl")],
      swiftSettings: [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        .treatAllWarnings(as: .error),
        .unsafeFlags(["-parse-as-library"]),
      ])
  ],
  swiftLanguageModes: [.v6]
)
