/**
 * What the bundler puts in place of JSX. All text of the page passes through here: characters that are
 * not seen are shown, so that no name can pass for another.
 */

import { type ComponentChild, h as create, type VNode } from "preact";

import { visible, visibleText } from "./text";

export { Fragment } from "preact";

export function h(type: string, props: object | null, ...children: ComponentChild[]): VNode {
  const show = type === "pre" ? visibleText : visible;
  const shown = (child: ComponentChild): ComponentChild => (typeof child === "string" ? show(child) : Array.isArray(child) ? child.map(shown) : child);
  return create(type, props, ...children.map(shown));
}
