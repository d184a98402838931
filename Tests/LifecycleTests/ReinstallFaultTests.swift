import Foundation
import Lifecycle
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// A reinstallation of which every call fails in turn: the bundle is there as a whole or not at all, and
/// the data, the extension's too, is what it was.
@Suite(.spreadScans) struct ReinstallFaultTests {
  private static let package = MemoryPackage(
    extensions: [("\(UpdateFixture.app).share", "20")],
    files: ["Example": "new program", "en.lproj/Words": "words"])

  @Test(arguments: [
    FaultKind(number: 5, staysBroken: true), FaultKind(number: 28, staysBroken: true),
    FaultKind(number: 5, staysBroken: false),
  ]) func eachCallFails(_ kind: FaultKind) throws {
    let rig = try UpdateFixture()
    let offload = try rig.plan(.offload, nil) { $0.savesFirst = false }
    try rig.carryOut(offload, Self.package)
    try rig.rig.copy("phone", to: "older")
    let before = try State(rig)
    #expect(before.files.count > 5)
    var recoveries = RecoveryCounts()
    var random = Seeded.fresh("ReinstallFaultTests")
    let stride = Sampling.stride(kind.staysBroken ? 4 : 9)
    var call = Int.random(in: 1...stride, using: &random)
    while call < 2000 {
      try rig.rig.directory.directory.removeTree("phone")
      try rig.rig.copy("older", to: "phone")
      let plan = try rig.plan(.reinstall, Self.package)
      let faults = Faults.Plan(
        at: call, number: try #require(kind.number), staysBroken: kind.staysBroken)
      var error: (any Error)?
      Faults.inject(faults) {
        do { try rig.carryOut(plan, Self.package) } catch let failure { error = failure }
      }
      let what = "\(kind), call \(call): \(error.map { "\($0)" } ?? "reported")"
      if let error { #expect(tellsWhatAndWhere(error), "\(what)") }
      recoveries += try rig.recover(what)
      try rig.expectReinstalledOrNot(before, mustBe: error == nil, what)
      if !faults.hasFired { break }
      call += stride
    }
    #expect(call < 2000, "it does not end")
    if kind.staysBroken { recoveries.expectBoth() }
  }
}

extension UpdateFixture {
  /// Holds that the app is back with all of its bundle, or gone as before, and everything else as it was.
  func expectReinstalledOrNot(_ before: State, mustBe: Bool, _ what: String) throws {
    let after = try State(self)
    let app = try device().apps.first { $0.identifier == Self.identifier }
    let isDone = app?.isInstalled ?? false
    #expect(isDone || !mustBe, "\(what)")
    #expect(after.files == before.files && after.trash == before.trash, "\(what)")
    #expect(!after.hasStaging, "\(what)")
    let bundles = try rig.records("phone/Containers/Bundle/Application").filter {
      $0.value.kind == .file && $0.key.lastComponent != Self.metadata
    }
    let names = Set(bundles.keys.map { $0.components.dropFirst(2).map(\.description) })
    let whole: Set = [
      ["Info.plist"], ["Example"], ["en.lproj", "Words"], ["PlugIns", "share.appex", "Info.plist"],
    ]
    #expect(names == (isDone ? whole : []), "\(what)")
    #expect(!isDone || app?.version == "2.0", "\(what)")
  }
}
