"""Texts about the sources of function plots."""

from __future__ import annotations

from typing import Final

from sidecar.kernel.catalogue.entries import Text

PLOTS: Final[dict[str, Text]] = {
    "plot.no_source": Text("There is nothing to draw.", "没有可绘制的内容。"),
    "plot.empty": Text("An expression is missing here.", "此处缺少表达式。"),
    "plot.ends_early": Text("The expression ends too early.", "表达式不完整。"),
    "plot.unclosed": Text("This parenthesis is never closed.", "这个括号没有闭合。"),
    "plot.unexpected": Text("“{found}” is not expected here.", "此处不应出现“{found}”。"),
    "plot.character": Text(
        "“{found}” has no place in an expression.", "表达式中不能使用“{found}”。"
    ),
    "plot.call": Text(
        "{name} needs its argument in parentheses: {name}(x).",
        "{name} 的参数要写在括号里：{name}(x)。",
    ),
    "plot.arguments": Text(
        "{name} takes {wanted} argument(s) here.", "{name} 需要 {wanted} 个参数。"
    ),
    "plot.name": Text(
        "“{name}” is not a function or constant that may be used.",
        "“{name}”不是可用的函数或常量。",
    ),
    "plot.too_deep": Text(
        "The expression is nested deeper than {limit} levels.", "表达式嵌套超过 {limit} 层。"
    ),
    "plot.too_many_expressions": Text(
        "A plot holds at most {limit} expressions.", "一个函数图最多包含 {limit} 个表达式。"
    ),
    "plot.too_many_nodes": Text(
        "The expressions are too long: {limit} nodes are the most.",
        "表达式过长：总节点数上限为 {limit}。",
    ),
    "plot.version": Text(
        "This version of plots is not known; {supported} is.",
        "不支持该版本的函数图，请使用 {supported}。",
    ),
    "plot.no_expressions": Text(
        "“expressions” must list at least one expression.", "expressions 至少要有一个表达式。"
    ),
    "plot.no_expression": Text("“expression” is missing.", "缺少 expression。"),
    "plot.not_two_numbers": Text(
        "“{name}” must be two numbers, the smaller one first.", "{name} 必须是两个数，较小的在前。"
    ),
    "plot.not_finite": Text(
        "The ends of “{name}” must be finite numbers of a sensible size.",
        "{name} 的两端必须是有限且大小合理的数。",
    ),
    "plot.reversed": Text(
        "In “{name}” the first number must be smaller than the second.",
        "{name} 的第一个数必须小于第二个数。",
    ),
    "plot.grid": Text("“grid” is true or false.", "grid 只能是 true 或 false。"),
    "plot.color": Text(
        "“{found}” is not a colour; the theme's is used. Write #RGB, #RRGGBB or a name.",
        "“{found}”不是颜色，已使用主题颜色；可写 #RGB、#RRGGBB 或颜色名。",
    ),
    "plot.label_cut": Text(
        "The label was cut after {limit} characters.", "标签过长，只保留前 {limit} 个字符。"
    ),
    "plot.unknown_member": Text(
        "“{name}” is not known here and was ignored; known are {known}.",
        "未知字段“{name}”已忽略；可用字段：{known}。",
    ),
    "plot.twice": Text("“{name}” is there twice.", "“{name}”重复出现。"),
    "plot.not_a_mapping": Text(
        "Names and values are expected here: {known}.", "此处应为键值对：{known}。"
    ),
    "plot.not_a_list": Text("A list is expected here.", "此处应为列表。"),
    "plot.not_a_text": Text("A single value is expected here.", "此处应为单个值。"),
    "plot.yaml": Text(
        "The source is no valid YAML or JSON[: {problem}].",
        "内容不是有效的 YAML 或 JSON[：{problem}]。",
    ),
    "plot.too_deep_mapping": Text("The source is nested too deeply.", "内容嵌套过深。"),
    "plot.undefined": Text(
        "“{source}” has no value anywhere in the domain.", "“{source}”在定义域内没有任何取值。"
    ),
    "plot.theme_unknown": Text(
        "The theme “{theme}” is not known here; the light colours were used.",
        "没有找到主题“{theme}”，已使用浅色配色。",
    ),
    "plot.render_failed": Text("The plot could not be drawn.", "无法绘制该函数图。"),
}
