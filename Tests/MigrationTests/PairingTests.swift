import Migration
import SandboxModel
import SystemIO
import Testing

@Suite struct PairingTests {
  private func identifier(_ text: ByteString) throws -> BundleIdentifier {
    try #require(BundleIdentifier(text))
  }

  private func container(
    _ logical: LogicalContainer, owner: BundleIdentifier?, at path: ByteString
  ) -> Container {
    Container(
      kind: logical.kind, identifier: BundleIdentifier(path.lastComponent ?? "") ?? owner,
      identification: .metadata, owner: owner, path: path,
      absolutePath: ByteString("/device").appending(path), member: nil, uuid: nil, revision: nil,
      inUseSince: nil, bundleDirectory: nil, logical: logical, isReadable: true,
      logicalPrefix: logical.prefix)
  }

  private func device(
    _ root: ByteString, _ layout: Layout, apps: [App], _ containers: [Container]
  ) -> Device {
    Device(
      root: root, layout: layout, identity: .named(root), apps: apps, containers: containers,
      findings: [])
  }

  @Test func containersArePairedByTheirLogicalNames() throws {
    let app = try identifier("org.example.a")
    let group = try identifier("group.org.example")
    let installed = App(
      app, isInstalled: true,
      groups: [.init(group: group, basis: .known(.signature))])
    let source = device(
      "/old", .coreSimulator, apps: [installed],
      [
        container(.bundle(LogicalName("org.example.a")), owner: app, at: "b/1"),
        container(.data(LogicalName("org.example.a")), owner: app, at: "d/1"),
        container(
          .extension(LogicalName("org.example.a.x"), of: LogicalName("org.example.a")), owner: app,
          at: "e/1"),
        container(
          .group(LogicalName("group.org.example")), owner: nil, at: "g/group.org.example"),
        container(
          .data(LogicalName("org.example.b")), owner: try identifier("org.example.b"), at: "d/2"),
      ])
    let target = device(
      "/new", .coreSimulator, apps: [App(app, isInstalled: true)],
      [container(.data(LogicalName("org.example.a")), owner: app, at: "d/9")])
    let pairs = try ContainerPairing.pairs(from: source, to: target, apps: [app])
    #expect(pairs.map(\.source.kind) == [.bundle, .data, .extension, .group])
    #expect(
      pairs.map(\.counterpart) == [.noHome, .present("/device/d/9"), .missing, .missing])
    let all = try ContainerPairing.pairs(from: source, to: target)
    #expect(all.last?.counterpart == .appMissing)
  }

  @Test func devicesOfDifferentFamiliesAreRefused() throws {
    let ios = device("/a", .coreSimulator, apps: [], [])
    for other in [
      device("/b", .flatpak, apps: [], []), device("/a", .coreSimulator, apps: [], []),
    ] {
      let error = #expect(throws: OperationError.self) {
        try ContainerPairing.pairs(from: ios, to: other)
      }
      #expect(error?.kind == .usage)
    }
    let folder = device("/c", .folder, apps: [], [])
    #expect(throws: OperationError.self) {
      try ContainerPairing.pairs(from: folder, to: device("/d", .folder, apps: [], []))
    }
    let error = #expect(throws: OperationError.self) {
      try ContainerPairing.pairs(from: ios, to: device("/e", .coreSimulator, apps: [], []))
    }
    #expect(error?.kind == .notFound)
  }
}
