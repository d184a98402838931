import Codecs
import InterApp
import SandboxModel
import SystemIO
import Testing

/// The app that gets a URL, the calls to it, and the image shown during the launch.
struct OpeningTests {
  private func opening(
    _ url: ByteString, _ apps: [AppDeclarations], state: AppState = .notRunning,
    version: ByteString? = nil, idiom: LaunchImage.Idiom = .phone, names: Set<ByteString> = []
  ) throws -> URLOpening {
    let model = try InterAppFixture.model(apps, version: version)
    let parsed = try URLText(reading: url)
    return URLOpening(
      parsed, URLOpening.Conditions(state: state, version: model.version, idiom: idiom),
      handlers: SchemeHandlers(of: parsed, model.version, in: model.schemes, apps), apps: apps
    ) { _ in names }
  }

  private static let open = "application:openURL:options:"

  @Test(arguments: [
    ("2.2", "application:handleOpenURL:"), ("4.1", "application:handleOpenURL:"),
    ("4.2", "application:openURL:sourceApplication:annotation:"),
    ("8.4.1", "application:openURL:sourceApplication:annotation:"), ("9.0", open), ("17", open),
  ]) func methodDependsOnTheVersion(version: String, selector: String) throws {
    let app = try InterAppFixture.scheme("com.a", ["mine"])
    let calls = try opening("mine:x", [app], version: ByteString(version)).calls
    #expect(calls.filter(\.passesURL).map(\.selector) == [selector])
  }

  @Test func launchMethodsThatReturnNoSuppressTheURL() throws {
    let app = try InterAppFixture.scheme("com.a", ["mine"])
    let launched = try opening("mine:x", [app])
    #expect(
      launched.calls.map(\.selector) == [
        "application:willFinishLaunchingWithOptions:",
        "application:didFinishLaunchingWithOptions:", Self.open, "applicationDidBecomeActive:",
      ])
    #expect(launched.isLaunched)
    #expect(launched.calls.prefix(2).allSatisfy { $0.onNo?.contains("suppressed") == true })
    #expect(launched.calls.last?.onNo == nil)
    let old = try opening("mine:x", [app], version: "5.1").calls.map(\.selector)
    #expect(old.first == "application:didFinishLaunchingWithOptions:")
    let first = try opening("mine:x", [app], version: "2.0").calls.map(\.selector)
    #expect(first.first == "applicationDidFinishLaunching:")
  }

  @Test func backgroundAppIsWoken() throws {
    let app = try InterAppFixture.scheme("com.a", ["mine"])
    let woken = try opening("mine:x", [app], state: .background)
    #expect(
      woken.calls.map(\.selector) == [
        "applicationWillEnterForeground:", Self.open, "applicationDidBecomeActive:",
      ])
    #expect(!woken.isLaunched && woken.image == .snapshot)
    // Before iOS 4, and for apps that terminate on suspension, there is no background state.
    #expect(try opening("mine:x", [app], state: .background, version: "3.1").isLaunched)
    let exiting = try InterAppFixture.scheme(
      "com.a", ["mine"], more: [("UIApplicationExitsOnSuspend", .bool(true))])
    #expect(try opening("mine:x", [exiting], state: .background).isLaunched)
    let visible = try opening("mine:x", [app], state: .foreground)
    #expect(visible.image == .visible && visible.calls.map(\.selector) == [Self.open])
  }

  @Test func scenesGetTheURLInstead() throws {
    let scenes = PropertyList.of([("UISceneConfigurations", .of([("role", .array([]))]))])
    let app = try InterAppFixture.scheme(
      "com.a", ["mine"], more: [("UIApplicationSceneManifest", scenes)])
    let calls = try opening("mine:x", [app], version: "13").calls
    #expect(calls.filter(\.passesURL).map(\.selector) == ["scene:willConnectToSession:options:"])
    let woken = try opening("mine:x", [app], state: .background).calls
    #expect(woken.filter(\.passesURL).map(\.selector) == ["scene:openURLContexts:"])
    let before = try opening("mine:x", [app], version: "12.4").calls
    #expect(before.filter(\.passesURL).map(\.selector) == [Self.open])
  }

  @Test func launchImageIsNamedAfterTheScheme() throws {
    let app = try InterAppFixture.scheme("com.a", ["mine"])
    func image(_ names: Set<ByteString>, idiom: LaunchImage.Idiom = .phone) throws -> LaunchImage? {
      try opening("MINE:x", [app], version: "5.1", idiom: idiom, names: names).image
    }
    #expect(
      try image(["Default.png", "Default-mine.png", "Default-mine@2x~iphone.png"])
        == .forScheme("Default-mine@2x~iphone.png"))
    #expect(try image(["Default.png", "Default-other.png"]) == .general("Default.png"))
    #expect(
      try image(["Default-mine-Portrait~ipad.png"], idiom: .pad)
        == .forScheme("Default-mine-Portrait~ipad.png"))
    #expect(try image([]) == .missing)
    let named = try InterAppFixture.scheme(
      "com.a", ["mine"],
      more: [
        ("UILaunchImageFile", .string("Start.png")), ("UILaunchStoryboardName", .string("Launch")),
      ])
    #expect(
      try opening("mine:x", [named], version: "7.1", names: ["Start-mine.png"]).image
        == .forScheme("Start-mine.png"))
    #expect(
      try opening("mine:x", [named], version: "8", names: ["Start-mine.png"]).image
        == .storyboard("Launch"))
  }

  @Test func receiverIsNamedOrUndefined() throws {
    let one = try InterAppFixture.scheme("com.a", ["mine"])
    let two = try InterAppFixture.scheme("com.b", ["mine", "sms"])
    #expect(try opening("mine:x", [one]).receiver == .app(one.app))
    let both = try opening("mine:x", [one, two])
    #expect(both.receiver == .undefined([one.app, two.app]))
    #expect(both.calls.isEmpty && both.image == nil)
    #expect(try opening("other:x", [one]).receiver == .nobody)
    guard case .system(let entry) = try opening("sms:123", [two]).receiver else {
      Issue.record("the system opens messages")
      return
    }
    #expect(entry.identifier == "com.apple.MobileSMS")
  }
}
