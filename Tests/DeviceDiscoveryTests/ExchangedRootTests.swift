import SandboxModel
import Synchronization
import SystemIO
import TestSupport
import Testing

@testable import DeviceDiscovery

/// A user exchanges directories and links in a device's path while the device is searched: no part
/// of the device comes from another home directory.
struct ExchangedRootTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    for home in ["first", "second"] {
      try directory.file("\(home)/.var/app/org.a.\(home)/data/x", "x")
      try directory.file(
        "\(home)/.local/share/flatpak/overrides/org.a.\(home)", "[Context]\n")
    }
    try directory.link("link", to: "first")
  }

  private func find(_ path: ByteString) throws -> Device {
    try DeviceFinder(layout: .flatpak, machineID: "m", systemFlatpak: nil).find(
      directory.path(path))
  }

  /// The names of the home directories that a device's containers belong to.
  private func homes(of device: Device) throws -> Set<ByteString> {
    let base = try Host.realPath(directory.path).components.count
    return Set(device.containers.map { $0.absolutePath.components[base] })
  }

  @Test func homeIsThatOfTheDevice() throws {
    let undisturbed = try find("link/.var/app")
    #expect(try homes(of: undisturbed) == ["first"])
    #expect(undisturbed.containers.contains { $0.kind == .settings })
    var (found, refused) = (0, 0)
    for call in 1... {
      let plan = Faults.Plan(before: nil, at: call) { [path = directory.path] in
        guard let base = try? Directory.open(path: path) else { return }
        try? base.createLink("new", to: "second")
        try? base.rename("new", to: "link", in: base)
      }
      do {
        let device = try Faults.inject(plan) { try find("link/.var/app") }
        #expect(try homes(of: device) == ["first"], "call \(call)")
        found += 1
      } catch let error as ModelError {
        #expect(error.errorCode == .replacedMeanwhile, "call \(call): \(error)")
        refused += 1
      }
      guard plan.hasFired else { break }
      try Directory.open(path: directory.path).remove("link")
      try directory.link("link", to: "first")
    }
    #expect(found > 1 && refused > 0, "\(found) found, \(refused) refused")
  }

  /// A link that replaces a directory of the path after it was resolved is not followed.
  @Test func resolvedPathIsNotResolvedAgain() throws {
    let plan = Faults.Plan(before: [.open], at: 1) { [path = directory.path] in
      guard let base = try? Directory.open(path: path) else { return }
      try? base.rename("first", to: "moved", in: base)
      try? base.createLink("first", to: "second")
    }
    #expect(throws: ModelError.self) {
      _ = try Faults.inject(plan) { try find("first/.var/app") }
    }
    #expect(plan.hasFired)
    // The same for the directory of overrides of a device that was found before.
    let root = try Host.realPath(directory.path).appending("third/.var/app")
    let overrides = FlatpakFinder.overrides(ofAppsIn: root)
    #expect(overrides?.isWithin(root.parent.parent) == true, "\(overrides as Any)")
  }
}
