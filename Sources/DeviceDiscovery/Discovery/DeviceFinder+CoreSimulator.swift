internal import SandboxModel
internal import SystemIO

extension DeviceFinder {
  /// Scans a device with the layout coresimulator.
  func coreSimulator(_ root: borrowing Directory, _ place: SimulatorLocation) -> Device {
    var survey = Survey(root: root.path)
    let facts = survey.simulatorFacts(of: root, place)
    var finder = CoreSimulatorFinder()
    for base in Self.bases(of: place) { finder.look(below: base, of: root, &survey) }
    if place == .fileSystem, (try? root.statusFollowing("private/var/mobile/Applications")) != nil {
      survey.warn(
        .unsupported, at: "private/var/mobile/Applications",
        because: "containers of iOS 7 and earlier are not supported")
    }
    var drafts = finder.drafts
    Identification.identify(&drafts, &survey)
    let containers = LogicalNaming.containers(of: drafts, &survey)
    return Device(
      root: root.path, layout: .coreSimulator, facts: facts,
      identity: identity(.coreSimulator, root.path, udid: facts.udid),
      apps: CoreSimulatorFinder.apps(of: drafts, containers), containers: containers,
      systemContainers: finder.system.sorted { $0.path < $1.path },
      findings: survey.findings.sorted())
  }

  private static func bases(of place: SimulatorLocation) -> [[ByteString]] {
    switch place {
    case .device: [["data", "Containers"]]
    case .data: [["Containers"]]
    case .fileSystem:
      [["private", "var", "mobile", "Containers"], ["private", "var", "containers"]]
    }
  }
}

extension Survey {
  /// Reads `device.plist` of a simulator or `SystemVersion.plist` of a device.
  mutating func simulatorFacts(
    of root: borrowing Directory, _ place: DeviceFinder.SimulatorLocation
  ) -> DeviceFacts {
    switch place {
    case .device: return devicePropertyList(in: root, as: "device.plist")
    case .data:
      // The record is beside the data directory, outside the root, and may be missing.
      let parts = root.path.components
      guard parts.last == "data", let above = outside(root.path.parent) else {
        return DeviceFacts()
      }
      return devicePropertyList(in: above, as: above.path.appending("device.plist"))
    case .fileSystem: return systemVersion(in: root)
    }
  }

  private mutating func devicePropertyList(
    in directory: borrowing Directory, as path: ByteString
  ) -> DeviceFacts {
    var facts = DeviceFacts()
    guard let list = dictionary("device.plist", in: directory, as: path) else { return facts }
    facts.udid = string("UDID", of: list, as: path)
    facts.name = string("name", of: list, as: path)
    guard let runtime = string("runtime", of: list, as: path) else { return facts }
    // com.apple.CoreSimulator.SimRuntime.iOS-16-4
    let last = runtime.bytes.split(separator: UInt8(ascii: ".")).last ?? []
    let parts = last.split(separator: UInt8(ascii: "-"))
    let isNumbered = parts.dropFirst().allSatisfy { $0.allSatisfy { (0x30...0x39).contains($0) } }
    guard let platform = parts.first, parts.count > 1, isNumbered else {
      warn(
        .wrongValue, at: path,
        because: "its runtime '\(runtime)' does not name a platform and a version")
      return facts
    }
    facts.platform = ByteString(platform)
    facts.version = ByteString(parts.dropFirst().joined(separator: [UInt8(ascii: ".")]))
    return facts
  }

  mutating func systemVersion(in root: borrowing Directory) -> DeviceFacts {
    var facts = DeviceFacts()
    let place: [ByteString] = ["System", "Library", "CoreServices"]
    let path: ByteString = "System/Library/CoreServices/SystemVersion.plist"
    guard let directory = inner(place, of: root, as: ""),
      let list = dictionary("SystemVersion.plist", in: directory, as: path)
    else { return facts }
    facts.version = string("ProductVersion", of: list, as: path)
    let product = string("ProductName", of: list, as: path)
    facts.platform = product == "iPhone OS" ? "iOS" : product
    return facts
  }
}
