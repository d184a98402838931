import DeviceDiscovery
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// The paths of a real iOS device, created as empty files. `make test` creates all paths that name
/// containers, and a sample of the others.
@Suite(.enabled(if: Shared.has(RealDevicePaths.material)))
struct RealDeviceTests {
  /// Returns the containers of each class in the list: `private/var/…/<class>` to UUIDs.
  private static func expected(_ paths: [ByteString]) -> [ByteString: Set<ByteString>] {
    var classes: [ByteString: Set<ByteString>] = [:]
    for path in paths {
      let parts = path.components
      guard let base = parts.firstIndex(where: { $0 == "Containers" || $0 == "containers" }),
        base <= 3, parts.count > base + 4
      else { continue }
      let name = parts[...(base + 2)].map(\.bytes).joined(separator: [UInt8(ascii: "/")])
      classes[ByteString(name), default: []].insert(parts[base + 3])
    }
    return classes
  }

  @Test func findsTheContainersOfTheList() throws {
    let all = try RealDevicePaths.load()
    #expect(all.count == 65_624)
    let paths = RealDevicePaths.sample(of: all)
    let directory = try TemporaryDirectory(inMemory: true)
    try RealDevicePaths.makeTree(of: paths, at: directory.path)
    let clock = ContinuousClock()
    let start = clock.now
    let device = try Device.find(root: directory.path)
    print("found the containers of the real device's paths in \(clock.now - start)")

    let expected = Self.expected(paths)
    #expect(device.layout == .coreSimulator)
    let kinds: [(ByteString, ContainerKind, Int)] = [
      ("private/var/containers/Bundle/Application", .bundle, 40),
      ("private/var/mobile/Containers/Data/Application", .data, 164),
      ("private/var/mobile/Containers/Data/PluginKitPlugin", .extension, 536),
      ("private/var/mobile/Containers/Shared/AppGroup", .group, 55),
    ]
    for (position, kind, count) in kinds {
      let found = device.containers.filter { $0.kind == kind }
      #expect(found.count == count)
      #expect(Set(found.compactMap(\.uuid)) == expected[position])
      #expect(found.allSatisfy { $0.path.isWithin(position) })
    }
    #expect(device.containers.count == kinds.map(\.2).reduce(0, +))
    let system = expected.filter { name, _ in !kinds.contains { $0.0 == name } }
    #expect(
      Dictionary(uniqueKeysWithValues: device.systemContainers.map { ($0.path, $0.count) })
        == system.mapValues(\.count))
    #expect(system.count == 3)
    try checkIdentities(of: device, paths)
  }

  /// The metadata files are empty: each is reported, and the fallbacks apply.
  private func checkIdentities(of device: Device, _ paths: [ByteString]) throws {
    let metadata = paths.filter {
      $0.lastComponent == ".com.apple.mobile_container_manager.metadata.plist"
        && device.container(at: $0.components.dropLast()) != nil
    }
    let empty = device.findings(.unusableFile).filter { $0.reason.contains("it is empty") }
    #expect(Set(metadata).isSubset(of: Set(empty.map(\.path))))
    #expect(metadata.count == 795)
    #expect(Set(device.logicalPrefixes).count == device.containers.count)
    let calculator = try device.app("calculator")
    #expect(
      device.containers(of: calculator).map(\.uuid) == ["FAD1C6F1-05A9-46EA-A9B6-5BD4FC37D4E7"])
    #expect(device.containers.contains { $0.logicalPrefix == "groups/group.com.reddit.Reddit" })
    let mapped = try paths.compactMap { path -> LogicalPath? in
      let real = device.root.appending(path)
      guard let logical = try device.logicalPath(ofPath: real) else { return nil }
      #expect(try device.realPath(of: logical) == real)
      return logical
    }
    #expect(Set(mapped).count == mapped.count)
  }
}

extension Device {
  fileprivate func container(at parts: ArraySlice<ByteString>) -> Container? {
    let path = ByteString(joining: parts)
    return containers.first { $0.path == path }
  }
}
