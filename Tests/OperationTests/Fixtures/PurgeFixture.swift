import BuiltinPolicies
import DeviceDiscovery
import DeviceScan
import PolicyEngine
import Purge
import SandboxModel
import SystemIO
import TestSupport

/// A simulator's device with one or more apps, whose files have the ages that a test sets.
struct PurgeFixture {
  let directory: TemporaryDirectory
  let root: ByteString

  /// A device in its own directory, or below a path, as on another volume.
  init(inMemory: Bool = true, below path: ByteString = "device") throws {
    try self.init(TemporaryDirectory("purge", inMemory: inMemory), below: path)
  }

  /// A device below a path of a directory.
  init(_ directory: TemporaryDirectory, below path: ByteString) throws {
    self.directory = directory
    root = path
    _ = try Directory.make(path: directory.path(path))
    for app in 0..<2 { _ = try Directory.make(path: directory.path(data(app)).appending("tmp")) }
  }

  /// The path of a data container in the fixture's directory.
  func data(_ app: Int = 0) -> ByteString {
    root.appending("Containers/Data/Application")
      .appending(ByteString("0A0A0A0A-0000-4000-8000-00000000000\(app)"))
  }

  /// Writes a file of `kib` KiB at a path in an app's data. It is `days` days younger than the
  /// default age, which is the number of days that the plan's clock is ahead.
  func put(
    _ path: ByteString, kib: Int = 4, youngerBy days: Int64 = 0, in app: Int = 0
  ) throws {
    let whole = data(app).appending(path)
    try directory.write([UInt8](repeating: 7, count: kib << 10), at: whole)
    guard days > 0, let name = path.lastComponent else { return }
    try above(whole).setModified(
      Timestamp(seconds: Host.now().seconds + days * 86_400), of: name)
  }

  /// The parent directory of a path in the fixture.
  func above(_ path: ByteString) throws -> Directory {
    try Directory.open(path: directory.path(path.parent))
  }

  func scan(_ overlays: [String] = []) throws -> DeviceScan {
    let device = try Device.find(root: directory.path(root), layout: .coreSimulator)
    return DeviceScan.run(
      device, policy: try Self.policy(overlays),
      options: .forPurge())
  }

  /// The device's policy, compiled once for all tests.
  private static let own = Result { try policy([""]) }

  /// The device's policy with overlays.
  static func policy(_ overlays: [String] = []) throws -> CompiledPolicy {
    if overlays.isEmpty { return try own.get() }
    let overlays = overlays.filter { !$0.isEmpty }
    let extra = overlays.enumerated().map { number, text in
      PolicySource(
        name: "overlay-\(number).yaml", bytes: Array(text.utf8), origin: .commandLine)
    }
    let library = PolicyLibrary(
      BuiltinPolicies.files.map { PolicySource(name: $0.name, bytes: $0.bytes, origin: .builtin) }
        + extra)
    return try library.compile(PolicyRequest(layout: .coreSimulator))
  }

  /// A request with a clock `daysAhead` days ahead, on a volume of the given sizes in MiB.
  func request(
    _ goal: PurgeRequest.Goal, level: Pressure.Level? = nil, daysAhead: Int64 = 40,
    free: UInt64 = 10, of total: UInt64 = 1000, _ scan: DeviceScan
  ) -> PurgeRequest {
    let space = VolumeSpace(available: free << 20, total: total << 20)
    var spaces: [UInt64: VolumeSpace] = [:]
    for entry in scan.containers.compactMap(\.entries.first) {
      spaces[entry.status.identity.device] = space
    }
    return PurgeRequest(
      goal, level: level, now: Timestamp(seconds: Host.now().seconds + daysAhead * 86_400),
      spaces: spaces)
  }

  func plan(
    _ goal: PurgeRequest.Goal = .everything, level: Pressure.Level? = .critical,
    daysAhead: Int64 = 40, _ overlays: [String] = []
  ) throws -> PurgePlan {
    let scan = try scan(overlays)
    return PurgePlan.make(scan, request(goal, level: level, daysAhead: daysAhead, scan))
  }

  /// The plan of everything that may be purged at critical pressure, with overlays.
  func plan(_ overlays: [String]) throws -> PurgePlan {
    try plan(.everything, level: .critical, daysAhead: 40, overlays)
  }

  /// The paths of all entries below an app's data, without directories.
  func files(_ app: Int = 0) throws -> Set<ByteString> {
    Set(
      try TreeRecord.all(in: directory, data(app)).filter { $0.value.kind != .directory }.keys)
  }
}

extension PurgePlan {
  /// The paths of the chosen units in their containers, in order.
  var chosenPaths: [ByteString] {
    volumes.flatMap { volume in volume.chosen.map { inner(units[Int($0)]) } }
  }

  /// The path of a unit in its container.
  func inner(_ unit: PurgeUnit) -> ByteString {
    let parts = path(of: unit).components.drop { $0 != "data" }.dropFirst()
    return ByteString(joining: parts)
  }
}
