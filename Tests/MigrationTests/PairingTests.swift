import DeviceDiscovery
import Migration
import SandboxModel
import SystemIO
import TestSupport
import Testing

struct PairingTests {
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
      pairs.map(\.counterpart) == [.noPlace, .present("/device/d/9"), .missing, .missing])
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

  /// An app's data has the same directories on iOS and macOS.
  @Test func containersOfIOSAndMacOSArePaired() throws {
    let app = try identifier("org.example.a")
    let data = container(.data(LogicalName("org.example.a")), owner: app, at: "d/1")
    let source = device("/old", .coreSimulator, apps: [App(app, isInstalled: true)], [data])
    let mac = device("/mac", .macOS, apps: [], [])
    #expect(
      try ContainerPairing.pairs(from: source, to: mac, apps: [app]).map(\.counterpart)
        == [.missing])
    #expect(ContainerPairing.haveSameContainers(.macOS, .coreSimulator))
    for other: Layout in [.flatpak, .android, .folder] {
      #expect(!ContainerPairing.haveSameContainers(.macOS, other), "\(other)")
    }
    #expect(!ContainerPairing.haveSameContainers(.folder, .folder))
  }

  /// A bundle contains the data of one app, so it has no place for other data.
  @Test func aBundleTakesOnlyTheDataOfItsApp() throws {
    let app = try identifier("org.example.a")
    let other = try identifier("org.example.b")
    let source = device(
      "/old", .coreSimulator, apps: [],
      [
        container(.data(LogicalName("org.example.a")), owner: app, at: "d/1"),
        container(
          .extension(LogicalName("org.example.a.x"), of: LogicalName("org.example.a")), owner: app,
          at: "e/1"),
        container(.data(LogicalName("org.example.b")), owner: other, at: "d/2"),
      ])
    let bundle = device(
      "/x.xcappdata", .coreSimulator, apps: [App(app, isInstalled: false)],
      [container(.data(LogicalName("org.example.a")), owner: app, at: "AppData")])
    let pairs = try ContainerPairing.pairs(from: source, to: bundle)
    #expect(pairs.map(\.counterpart) == [.present("/device/AppData"), .noPlace, .noPlace])
    let error = #expect(throws: OperationError.self) {
      try ContainerPairing.pairs(from: source, to: bundle, apps: [other])
    }
    #expect(error?.description.contains("org.example.a") == true)
  }

  @Test func aNewBundleNamesItsApp() throws {
    let directory = try TemporaryDirectory("bundle")
    #expect(try NewAppDataBundle(at: directory.path("a")) == nil)
    #expect(throws: OperationError.self) {
      try NewAppDataBundle(at: directory.path("none/a.xcappdata"))
    }
    let path = directory.path("a.xcappdata")
    let bundle = try #require(try NewAppDataBundle(at: path))
    let app = try identifier("org.example.a")
    try bundle.make(of: app, version: "1.2", build: nil)
    let device = try Device.find(root: path)
    #expect(NewAppDataBundle.isBundle(device))
    #expect(device.containers.map(\.logicalPrefix) == ["apps/org.example.a/data"])
    #expect(device.apps.map(\.version) == ["1.2"])
    // An existing bundle is not a new one.
    #expect(try NewAppDataBundle(at: path) == nil)
    #expect(throws: OperationError.self) { try bundle.make(of: app, version: nil, build: nil) }
    try directory.write("x", at: "a.xcappdata/AppData/Documents/x")
    bundle.removeIfEmpty()
    #expect(try directory.read("a.xcappdata/AppData/Documents/x") == Array("x".utf8))
    try directory.directory.removeTree("a.xcappdata")
    try bundle.make(of: app, version: nil, build: nil)
    bundle.removeIfEmpty()
    #expect(try directory.directory.names().isEmpty)
  }
}
