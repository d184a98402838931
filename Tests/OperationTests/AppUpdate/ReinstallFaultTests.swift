import AppUpdate
import Foundation
import SandboxModel
import SystemIO
import TestSupport
import Testing

/// A reinstallation in which each call fails in turn: the bundle is completely present or absent,
/// and all data, including the extension's, is unchanged.
@Suite(.spreadScans) struct ReinstallFaultTests {
  private static let package = MemoryPackage(
    extensions: [("\(UpdateFixture.app).share", "20")],
    files: ["Example": "new program", "en.lproj/Words": "words"])

  @Test(arguments: [
    FaultKind(number: 5, failsRepeatedly: true), FaultKind(number: 28, failsRepeatedly: true),
    FaultKind(number: 5, failsRepeatedly: false),
  ]) func aFailedCallLeavesTheBundleWholeOrAbsent(_ kind: FaultKind) throws {
    let fixture = try UpdateFixture()
    let offload = try fixture.plan(.offload, nil) { $0.savesFirst = false }
    try fixture.carryOut(offload, Self.package)
    try fixture.base.copy("phone", to: "older")
    let before = try State(fixture)
    #expect(before.files.count > 5)
    var recoveries = RecoveryCounts()
    var random = Seeded.fresh("ReinstallFaultTests")
    let stride = Sampling.stride(kind.failsRepeatedly ? 4 : 9)
    var call = Int.random(in: 1...stride, using: &random)
    while call < 2000 {
      try fixture.base.directory.directory.removeTree("phone")
      try fixture.base.copy("older", to: "phone")
      let plan = try fixture.plan(.reinstall, Self.package)
      let faults = Faults.Plan(
        at: call, number: try #require(kind.number), failsRepeatedly: kind.failsRepeatedly)
      var error: (any Error)?
      Faults.inject(faults) {
        do { try fixture.carryOut(plan, Self.package) } catch let failure { error = failure }
      }
      let what = "\(kind), call \(call): \(error.map { "\($0)" } ?? "reported")"
      if let error { #expect(tellsWhatAndWhere(error), "\(what)") }
      recoveries += try fixture.recover(what)
      try fixture.expectReinstalledOrNot(before, mustBe: error == nil, what)
      if !faults.hasFired { break }
      call += stride
    }
    #expect(call < 2000, "the loop does not end")
    if kind.failsRepeatedly { recoveries.expectBoth() }
  }
}

extension UpdateFixture {
  /// Checks that the app has its whole bundle again, or none as before, and that everything else is
  /// unchanged.
  func expectReinstalledOrNot(_ before: State, mustBe: Bool, _ what: String) throws {
    let after = try State(self)
    let app = try device().apps.first { $0.identifier == Self.identifier }
    let isDone = app?.isInstalled ?? false
    #expect(isDone || !mustBe, "\(what)")
    #expect(after.files == before.files && after.trash == before.trash, "\(what)")
    #expect(!after.hasStaging, "\(what)")
    let bundles = try base.records("phone/Containers/Bundle/Application").filter {
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
