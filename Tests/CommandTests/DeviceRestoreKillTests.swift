import Foundation
import SystemIO
import TestSupport
import Testing

/// A restore into a device that is killed at any moment: each container is not there, or whole.
@Suite(.serialized) struct DeviceRestoreKillTests {
  @Test func aContainerIsOldOrNew() throws {
    var random = Seeded.fresh()
    let rig = try DeviceRestoreRig(policy: "everything")
    let restore = "restore latest --in-place --repo repo --quiet"
    try rig.removeContainers(of: "device")
    let start = Host.monotonicSeconds()
    _ = try rig.cli.succeed(restore)
    let duration = Host.monotonicSeconds() - start
    let all = try rig.cli.containers(of: "original")
    var kills = 0
    for _ in 0..<20 where kills < 4 {
      try rig.removeContainers(of: "device")
      let moment = Double.random(in: 0.01...max(0.05, duration), using: &random)
      let outcome = try rig.cli.run(
        restore, under: ["timeout", "--signal=KILL", String(format: "%.3f", moment)])
      if outcome.code != 0 { kills += 1 }
      let present = try rig.cli.containers(of: "device")
      #expect(present.count == all.count || outcome.code != 0)
      for container in present {
        let source = try #require(all.first { $0.path == container.path }?.realPath)
        try TreeComparison.expectSame(rig.cli.folder, source, container.realPath)
      }
    }
    #expect(kills == 4)
    // What a killed run left behind is no container, and goes with the next run.
    _ = try rig.cli.succeed(restore)
    #expect(try rig.cli.containers(of: "device").count == all.count)
    for folder in Set(all.map(\.realPath.folderPath)) {
      let names = try Folder.open(path: folder).names()
      #expect(!names.contains { $0.description.hasPrefix(".sandboxctl") })
    }
  }
}
