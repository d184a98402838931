import DeviceDiscovery
import SampleDevice
import SandboxModel
import SystemIO
import TestSupport
import Testing

@Suite("Discovery of the sample device")
struct DiscoveryTests {
  @Test("finds four apps, one of them offloaded, an extension, and known and guessed groups")
  func appsExtensionsAndGroupsAreFound() throws {
    let scratch = try TemporaryDirectory("sample")
    _ = try SampleDevice.make(at: scratch.path("a"))
    let device = try Device.find(root: scratch.path("a"))
    #expect(device.layout == .coreSimulator)
    #expect(device.osVersion == "17.5")
    #expect(device.name == "Sample iPhone")
    #expect(
      device.apps.map { "\($0.identifier) \($0.isInstalled)" } == [
        "com.example.podcast false", "org.example.darkroom true", "org.example.notebook true",
        "org.example.reader true",
      ])
    let extensions = device.apps.flatMap(\.extensions)
    #expect(extensions.map(\.identifier.description) == ["org.example.notebook.share"])
    #expect(extensions.map(\.build) == ["320"])
    let groups = device.apps.flatMap { app in
      app.groups.map { "\(app.identifier) \($0.group) \($0.isKnown)" }
    }
    #expect(
      groups == [
        "com.example.podcast group.com.example.podcast false",
        "org.example.notebook group.org.example.library true",
        "org.example.reader group.org.example.library true",
      ])
    let kinds = Dictionary(grouping: device.containers, by: \.kind).mapValues(\.count)
    #expect(kinds == [.bundle: 3, .data: 4, .extension: 1, .group: 2])
    #expect(device.findings.isEmpty, "\(device.findings)")
  }
}
