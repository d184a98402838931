import Codecs
import DeviceDiscovery
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// Devices in one directory, as a Mac stores its simulators, and home directories in another.
struct DeviceCandidateTests {
  private let directory: TemporaryDirectory
  private let finder = DeviceFinder(machineID: "m", systemFlatpak: nil)

  init() throws { directory = try TemporaryDirectory() }

  private func addSimulator(_ location: String, _ name: String, udid: String) throws {
    try directory.propertyList(
      "\(location)/device.plist",
      .of([
        ("UDID", .string(udid)), ("name", .string(name)),
        ("runtime", .string("com.apple.CoreSimulator.SimRuntime.iOS-16-4")),
      ]))
    try directory.makeDirectory("\(location)/data/Containers/Data/Application")
  }

  private static let udids = [
    "AAAAAAAA-0000-4000-8000-000000000001", "AAAAAAAA-0000-4000-8000-000000000002",
  ]

  private func addTwo(named second: String = "Old iPhone") throws {
    try addSimulator("Devices/one", "iPhone 14", udid: Self.udids[0])
    try addSimulator("Devices/two", second, udid: Self.udids[1])
    try directory.file("Devices/device_set.plist", "no device")
    try directory.makeDirectory("Devices/empty")
  }

  @Test(arguments: [
    "old iphone", "Old iPhone", "two", "AAAAAAAA-0000-4000-8000-000000000002",
    "aaaaaaaa-0000-4000-8000-000000000002", "udid:AAAAAAAA-0000-4000-8000-000000000002",
  ])
  func deviceIsFoundByNameDirectoryUDIDOrIdentity(_ word: String) throws {
    try addTwo()
    let candidates = try finder.candidates(in: directory.path("Devices"))
    #expect(candidates.count == 2)
    let found = try candidates.device(ByteString(word))
    #expect(found.directory == directory.path("Devices/two") && found.layout == .coreSimulator)
    // The selected device is the one found at its path.
    let device = try finder.find(found.directory)
    #expect(device.identity == found.identity && device.root == found.root)
    #expect(device.name == found.name)
  }

  @Test func deviceIsFoundByItsPathDespiteEqualNames() throws {
    try addTwo(named: "one")
    let path = directory.path("Devices/one")
    let candidates = try finder.candidates(in: directory.path("Devices"))
    #expect(try candidates.device(path).directory == path)
    let error = #expect(throws: ModelError.self) { try candidates.device("ONE") }
    #expect(error?.code == .ambiguousDevice)
    for udid in Self.udids { #expect(error?.hint?.contains(udid) == true, "\(error?.hint ?? "")") }
  }

  @Test func unknownNameListsTheDevices() throws {
    try addTwo()
    let candidates = try finder.candidates(in: directory.path("Devices"))
    let error = #expect(throws: ModelError.self) { try candidates.device("iPad") }
    #expect(error?.code == .noDevice)
    #expect(
      error?.hint
        == "choose one of 'iPhone 14' (\(Self.udids[0]), coresimulator), "
        + "'Old iPhone' (\(Self.udids[1]), coresimulator)")
  }

  @Test func deviceDirectoryIsTheOnlyDevice() throws {
    try addTwo()
    let candidates = try finder.candidates(in: directory.path("Devices/one"))
    #expect(candidates.map(\.name) == ["iPhone 14"])
    #expect(throws: ModelError.self) { try candidates.device("Old iPhone") }
  }

  /// A home directory has one device for each of its layouts, with that layout's own root.
  @Test func homesAreFoundByUserName() throws {
    for app in ["alice", "bob"] {
      try directory.file("home/\(app)/.var/app/org.example.A/data/x", "x")
    }
    try directory.file("home/bob/snap/reader/7/x", "x")
    try directory.link("home/bob/snap/reader/current", to: "7")
    let candidates = try finder.candidates(in: directory.path("home"))
    #expect(candidates.map(\.layout) == [.flatpak, .flatpak, .snap])
    let alice = try candidates.device("alice")
    #expect(alice.root == directory.path("home/alice/.var/app"))
    #expect(try finder.find(alice.directory).identity == alice.identity)
    #expect(
      #expect(throws: ModelError.self) { try candidates.device("bob") }?.code == .ambiguousDevice)
    let snap = try DeviceFinder(layout: .snap, machineID: "m").candidates(
      in: directory.path("home"))
    #expect(try snap.device("bob").root == directory.path("home/bob/snap"))
  }

  /// Any user may have made a link; its target can be selected directly.
  @Test func linksAmongTheDirectoriesAreNotFollowed() throws {
    try addTwo()
    try directory.link("Linked/two", to: directory.string + "/Devices/two")
    #expect(try finder.candidates(in: directory.path("Linked")).isEmpty)
  }

  @Test func longListNamesTheFirstTen() throws {
    for number in 10..<22 {
      try addSimulator("Devices/\(number)", "iPhone \(number)", udid: "UDID-\(number)")
    }
    let listed = try finder.candidates(in: directory.path("Devices")).listed
    #expect(listed.contains("'iPhone 19'") && !listed.contains("'iPhone 20'"))
    #expect(listed.hasSuffix(" and 2 more"))
  }
}
