/// A call of the system to an app that gets a URL, in the order in which the calls are made (App
/// Programming Guide for iOS, "Handling URL Requests"; UIKit, UIApplicationDelegate and
/// UISceneDelegate).
package struct DelegateCall: Sendable, Hashable {
  /// The selector: `application:openURL:options:`.
  package let selector: String
  /// Whether this call passes the URL.
  package let passesURL: Bool
  /// The arguments that concern the URL.
  package let arguments: [String]
  /// The effect of a return value of YES; nil for a method without one.
  package let onYes: String?
  /// The effect of a return value of NO; nil for a method without one.
  package let onNo: String?
}

/// The state of an app when a URL arrives for it.
package enum AppState: String, Sendable, Hashable, CaseIterable {
  case notRunning = "not-running"
  case background
  case foreground
}

extension DelegateCall {
  /// Returns the calls for a URL.
  ///
  /// - Parameters:
  ///   - state: The app's state; `background` needs iOS 4.
  ///   - version: The version of the system, or nil for the newest.
  ///   - hasScenes: Whether the app has a scene manifest, which counts from iOS 13.
  package static func calls(
    from state: AppState, on version: SystemVersion?, hasScenes: Bool
  ) -> [DelegateCall] {
    let isAtLeast = { (major: Int, minor: Int) -> Bool in
      version.map { SystemVersion(major, minor) <= $0 } ?? true
    }
    if hasScenes, isAtLeast(13, 0) { return sceneCalls(from: state) }
    var calls: [DelegateCall] = []
    switch state {
    case .notRunning: calls = launchCalls(isAtLeast)
    case .background: calls = [plain("applicationWillEnterForeground:")]
    case .foreground: break
    }
    calls.append(openCall(isAtLeast))
    if state != .foreground { calls.append(plain("applicationDidBecomeActive:")) }
    return calls
  }

  private static func plain(_ selector: String) -> DelegateCall {
    DelegateCall(selector: selector, passesURL: false, arguments: [], onYes: nil, onNo: nil)
  }

  /// The launch methods: application:willFinishLaunchingWithOptions: exists from iOS 6,
  /// application:didFinishLaunchingWithOptions: from iOS 3.
  private static func launchCalls(_ isAtLeast: (Int, Int) -> Bool) -> [DelegateCall] {
    guard isAtLeast(3, 0) else { return [plain("applicationDidFinishLaunching:")] }
    let will = "application:willFinishLaunchingWithOptions:"
    let did = "application:didFinishLaunchingWithOptions:"
    return (isAtLeast(6, 0) ? [will, did] : [did]).map { selector in
      DelegateCall(
        selector: selector, passesURL: false,
        arguments: [
          "UIApplicationLaunchOptionsURLKey: the URL",
          "UIApplicationLaunchOptionsSourceApplicationKey: the bundle identifier of the sender",
        ], onYes: "the method that opens the URL is called",
        onNo: "the URL is suppressed: the method that opens it is not called")
    }
  }

  private static func openCall(_ isAtLeast: (Int, Int) -> Bool) -> DelegateCall {
    let (selector, arguments): (String, [String]) =
      if isAtLeast(9, 0) {
        (
          "application:openURL:options:",
          [
            "UIApplicationOpenURLOptionsSourceApplicationKey: the sender, if of the same team",
            "UIApplicationOpenURLOptionsAnnotationKey",
            "UIApplicationOpenURLOptionsOpenInPlaceKey",
          ]
        )
      } else if isAtLeast(4, 2) {
        (
          "application:openURL:sourceApplication:annotation:",
          ["sourceApplication: the bundle identifier of the sender", "annotation: a property list"]
        )
      } else {
        ("application:handleOpenURL:", [])
      }
    return DelegateCall(
      selector: selector, passesURL: true, arguments: arguments, onYes: "the app opened the URL",
      onNo: "the app did not open the URL; the sender is not notified")
  }

  /// Scenes get URLs instead of the app's delegate, with no return value.
  private static func sceneCalls(from state: AppState) -> [DelegateCall] {
    let open = DelegateCall(
      selector: "scene:openURLContexts:", passesURL: true,
      arguments: ["URLContexts: the URL and its options"], onYes: nil, onNo: nil)
    switch state {
    case .notRunning:
      let connect = DelegateCall(
        selector: "scene:willConnectToSession:options:", passesURL: true,
        arguments: ["connectionOptions.URLContexts: the URL and its options"], onYes: nil, onNo: nil
      )
      return sceneLaunch + [
        connect, plain("sceneWillEnterForeground:"), plain("sceneDidBecomeActive:"),
      ]
    case .background:
      return [plain("sceneWillEnterForeground:"), open, plain("sceneDidBecomeActive:")]
    case .foreground: return [open]
    }
  }

  /// The launch methods of an app with scenes, whose options do not contain the URL.
  private static let sceneLaunch: [DelegateCall] = [
    "application:willFinishLaunchingWithOptions:", "application:didFinishLaunchingWithOptions:",
  ].map { selector in
    DelegateCall(
      selector: selector, passesURL: false, arguments: [],
      onYes: "the scene is connected, and gets the URL",
      onNo: "has no documented effect on the URL, which the scene gets")
  }
}
